"""Timeline and memory, one above the other on one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.core import Trace
from explorer.figures.memory import level_axis, memory_info, memory_traces
from explorer.figures.timeline import (
    lane_axis,
    lanes_height,
    time_axis,
    timeline_info,
    timeline_layout,
    timeline_traces,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MEMORY_HEIGHT, _MARGINS, _GAP = 220, 148, 28  # pixels


def timeline_and_memory(
    trace: Trace, *, predicted: Trace | None = None, device_bytes: float | None = None
) -> go.Figure:
    """`timeline` above `memory` with a shared time axis: what an exported page shows.

    Args:
        trace: what happened.
        predicted: what was to happen, faint behind it.
        device_bytes: what each device has, drawn as a line where the trace knows bytes.

    Raises:
        InputError: if `trace` or `predicted` is not a Trace, they differ in their ranks, or `device_bytes` is no number
            above 0.
    """
    import plotly.graph_objects as go

    bars = timeline_info(trace, predicted=predicted)
    lines = memory_info(trace, predicted=predicted, device_bytes=device_bytes)
    lanes = lanes_height(bars)
    inner = lanes + _GAP + _MEMORY_HEIGHT
    figure = go.Figure(timeline_traces(bars))
    figure.add_traces(
        [line.update(yaxis="y2", legend="legend2") for line in memory_traces(lines._replace(time=bars.unit))]
    )
    figure.update_layout(
        timeline_layout(bars),
        height=inner + _MARGINS,
        xaxis={**time_axis(bars.unit), "anchor": "y2"},
        yaxis={**lane_axis(bars), "domain": [1 - lanes / inner, 1]},
        yaxis2={**level_axis(lines), "domain": [0, _MEMORY_HEIGHT / inner]},
        legend2={"x": 1.005, "y": _MEMORY_HEIGHT / inner, "yanchor": "top", "font": {"size": 11}},
    )
    return figure
