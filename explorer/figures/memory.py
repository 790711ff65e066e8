"""Memory over time, a line a rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import Levels, in_flight_over_time, memory_over_time
from explorer.core import Trace
from explorer.errors import InputError
from explorer.figures.palette import EITHER, MARK, rank_color
from explorer.figures.timeline import MODEBAR, time_axis
from explorer.figures.units import Unit, bytes_unit, time_unit
from explorer.figures.words import check_predicted, check_trace, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_IN_LEGEND = 16  # ranks


class Line(NamedTuple):
    """One rank's level over time.

    Attributes:
        rank: the pipeline rank.
        time: (n,) float64, seconds.
        level: (n,) int64, bytes or micro-batches; each holds until the next time.
    """

    rank: int
    time: npt.NDArray[np.float64]
    level: npt.NDArray[np.int64]


class MemoryInfo(NamedTuple):
    """All that a memory chart shows.

    Attributes:
        title: escaped.
        what: what the levels are: "memory held", or "micro-batches in flight" where no bytes are known.
        time: the unit of time.
        unit: of the levels.
        lines: what happened, one a rank.
        predicted: the prediction, one a rank; empty if there is none that compares.
        device_bytes: what each device has, or None.
    """

    title: str
    what: str
    time: Unit
    unit: Unit
    lines: list[Line]
    predicted: list[Line]
    device_bytes: float | None = None


def memory(trace: Trace, *, predicted: Trace | None = None, device_bytes: float | None = None) -> go.Figure:
    """How much memory each rank holds over time; micro-batches in flight where the trace knows no bytes.

    Args:
        trace: what happened.
        predicted: what was to happen, drawn faint and dashed behind it.
        device_bytes: what each device has, drawn as a line where the trace knows bytes.

    Raises:
        InputError: if `trace` or `predicted` is not a Trace, they differ in their ranks, or `device_bytes` is no number
            above 0.
    """
    import plotly.graph_objects as go

    info = memory_info(trace, predicted=predicted, device_bytes=device_bytes)
    figure = go.Figure(memory_traces(info))
    figure.update_layout(
        title={"text": info.title, "subtitle": {"text": info.what}, "x": 0.01, "font": {"size": 16}},
        template="none",
        font={"color": EITHER.text, "size": 12},
        paper_bgcolor=EITHER.paper,
        plot_bgcolor=EITHER.paper,
        margin={"l": 64, "r": 24, "t": 80, "b": 48},
        height=360,
        modebar=MODEBAR,
        xaxis=time_axis(info.time),
        yaxis=level_axis(info),
    )
    return figure


def memory_info(trace: Trace, *, predicted: Trace | None = None, device_bytes: float | None = None) -> MemoryInfo:
    """What `memory` shows, as numbers and texts."""
    device_bytes = check_device(device_bytes)
    trace = check_trace(trace, function="memory")
    predicted = check_predicted(predicted, trace, function="memory")
    either = [t for t in (trace, predicted) if t is not None]
    in_bytes = any(len(t.memory) for t in either)
    of = memory_over_time if in_bytes else in_flight_over_time
    comparable = predicted is not None and (len(predicted.memory) > 0 or not in_bytes)
    lines = _lines(trace, of(trace))
    behind = _lines(predicted, of(predicted)) if predicted is not None and comparable else []
    most = max((float(line.level.max(initial=0)) for line in (*lines, *behind)), default=0.0)
    limit = device_bytes if in_bytes else None
    span = max((float(line.time[-1]) for line in (*lines, *behind) if len(line.time)), default=0.0)
    return MemoryInfo(
        title_of(trace),
        "memory held" if in_bytes else "micro-batches in flight",
        time_unit(span, trace.clock),
        bytes_unit(max(most, limit or 0.0)) if in_bytes else Unit("", 1.0),
        lines,
        behind,
        limit,
    )


def memory_traces(info: MemoryInfo) -> list[go.Scatter]:
    """One plotly trace a rank for what happened, one for what was predicted, and one for what the device has."""
    n_ranks = len(info.lines)
    faint = [_trace(info, line, n_ranks, faint=True) for line in info.predicted]
    drawn = [*faint, *(_trace(info, line, n_ranks, faint=False) for line in info.lines)]
    if info.device_bytes is None:
        return drawn
    ends = [max((float(line.time[-1]) for line in info.lines if len(line.time)), default=0.0)]
    return [*drawn, device_trace(info.device_bytes, np.array([0.0, *ends]) * info.time.factor, info.unit)]


def device_trace(device_bytes: float, ends: npt.NDArray[np.float64], unit: Unit) -> go.Scatter:
    """The line of what a device has, between two times as they are drawn."""
    import plotly.graph_objects as go

    return go.Scatter(
        x=ends,
        y=np.full(2, device_bytes * unit.factor),
        mode="lines",
        line={"color": MARK, "width": 2},
        name="the device has",
        hovertemplate=f"the device has %{{y:.4~g}} {unit.name}<extra></extra>",
    )


def check_device(device_bytes: float | None) -> float | None:
    """What a device has, in bytes, or None.

    Raises:
        InputError: if it is no number above 0.
    """
    number = isinstance(device_bytes, (int, float, np.integer, np.floating)) and not isinstance(device_bytes, bool)
    if device_bytes is None or (number and device_bytes > 0):
        return device_bytes
    raise InputError(
        f"device_bytes is bytes, above 0; got {str(device_bytes)[:40]}; try 80 * 2**30", argument="device_bytes"
    )


def level_axis(info: MemoryInfo) -> dict[str, Any]:
    """The vertical axis, from 0."""
    name = f"{info.what} ({info.unit.name})" if info.unit.name else info.what
    return {
        "title": {"text": name},
        "rangemode": "tozero",
        "gridcolor": EITHER.grid,
        "zerolinecolor": EITHER.grid,
        "fixedrange": True,
    }


def _lines(trace: Trace, levels: Levels) -> list[Line]:
    """Each rank's levels, from 0 where it holds nothing yet, to the end of the trace."""
    if not len(levels.time):
        return [Line(rank, np.empty(0), np.empty(0, np.int64)) for rank in range(trace.n_ranks)]
    events = trace.events
    first = min(float(levels.time.min()), float(events.start.min(initial=np.inf)))
    last = max(float(levels.time.max()), float(events.end.max(initial=-np.inf)))
    found = []
    for rank in range(levels.n_ranks):
        time, level = levels.of(rank)
        held_last = level[-1] if len(level) else 0
        found.append(Line(rank, np.concatenate([[first], time, [last]]), np.concatenate([[0], level, [held_last]])))
    return found


def _trace(info: MemoryInfo, line: Line, n_ranks: int, *, faint: bool) -> go.Scatter:
    import plotly.graph_objects as go

    unit = f" {info.unit.name}" if info.unit.name else ""
    words = f"rank {line.rank}{' (predicted)' if faint else ''}: %{{y:.4~g}}{unit}<extra></extra>"
    return go.Scatter(
        x=line.time * info.time.factor,
        y=line.level * info.unit.factor,
        mode="lines",
        line={
            "shape": "hv",
            "color": rank_color(line.rank, n_ranks),
            "width": 1.6,
            "dash": "dot" if faint else "solid",
        },
        opacity=0.5 if faint else 1.0,
        name=f"rank {line.rank}",
        legendgroup=f"rank {line.rank}",
        showlegend=not faint and n_ranks <= _MOST_IN_LEGEND,
        hovertemplate=words,
    )
