"""Where and why a prediction and a measurement differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import paired
from explorer.core import Kind, Trace
from explorer.errors import InputError
from explorer.figures.compare import compare_info, compare_layout, compare_traces
from explorer.figures.palette import EITHER, KIND_COLORS, KIND_LETTERS, KIND_TITLES, LESS, MORE, WHOLE
from explorer.figures.timeline import MODEBAR
from explorer.figures.units import Unit, time_unit
from explorer.figures.words import check_trace
from explorer.planner import Difference

if TYPE_CHECKING:
    import plotly.graph_objects as go

_BELOW, _GAP = 240, 56  # pixels
_PART_WORDS = {
    "durations": "actions took<br>other times",
    "transfers": "messages took<br>other times",
    "order": "another<br>order",
    "host": "idle though<br>all was there",
}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")


class Residuals(NamedTuple):
    """Actions of one kind that two traces share; all columns (n,).

    Attributes:
        kind: of all of them.
        start: float64 seconds, when each started as measured.
        difference: float64 seconds, measured − predicted duration.
        place: int64 (n, 3), rank, stage and micro-batch.
    """

    kind: Kind
    start: npt.NDArray[np.float64]
    difference: npt.NDArray[np.float64]
    place: npt.NDArray[np.int64]


def residual_chart(predicted: Trace, measured: Trace, *, step: int | None = None) -> go.Figure:
    """Prediction above measurement, and under them how much longer each action took than predicted, when.

    Args:
        predicted: what was to happen.
        measured: what happened.
        step: number of the step in both; None for that of median makespan in each, the first left out.

    Raises:
        InputError: if one is no Trace or has no such step, or no action is in both.
    """
    import plotly.graph_objects as go

    for argument, trace in (("predicted", predicted), ("measured", measured)):
        check_trace(trace, function="residual_chart", argument=argument)
    info = compare_info(predicted, measured, names=("predicted", "measured"), step=step)
    figure = go.Figure(compare_traces(info))
    layout = compare_layout(info, below=_BELOW + _GAP)
    inner = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    figure.add_traces(
        [_points(one, n, info.unit) for n, one in enumerate(residual_info(predicted, measured, step=step))]
    )
    unit = f" ({info.unit.name})" if info.unit.name else ""
    figure.update_layout(
        layout,
        xaxis={**layout["xaxis"], "anchor": "y3"},
        yaxis3={
            "domain": [0, _BELOW / inner],
            "title": {"text": f"measured − predicted{unit}"},
            **{"gridcolor": EITHER.grid, "zerolinecolor": EITHER.text, "fixedrange": True},
        },
    )
    return figure


def residual_info(predicted: Trace, measured: Trace, *, step: int | None = None) -> list[Residuals]:
    """What `residual_chart` shows under the timelines: an entry a kind that both traces have."""
    pairs = paired(predicted, measured, step=step)
    here, there = pairs.predicted.take(pairs.left), pairs.measured.take(pairs.right)
    difference = (there.end - there.start) - (here.end - here.start)
    place = np.stack([here.rank, here.stage, here.micro_batch], axis=1).astype(np.int64)
    found = []
    for kind in (Kind(int(code)) for code in np.unique(here.kind)):
        rows = here.kind == kind
        found.append(Residuals(kind, there.start[rows], difference[rows], place[rows]))
    return found


def difference_chart(difference: Difference) -> go.Figure:
    """From the predicted to the measured makespan, a bar for each part of the way.

    Args:
        difference: as `explorer.explain_difference` gives it.

    Raises:
        InputError: if it is something else.
    """
    import plotly.graph_objects as go

    if not isinstance(difference, Difference):
        raise InputError(
            f"difference_chart draws a Difference; got {type(difference).__name__}; "
            "make one with explorer.explain_difference(predicted, measured)",
            argument="difference",
        )
    unit = time_unit(difference.measured, difference.clock)
    stretch = _stretch(difference, unit)
    told = "how far each part carries the makespan" + ("; the axis begins above 0" if stretch[0] > 0 else "")
    axis = {"title": {"text": f"makespan ({unit.name})" if unit.name else "makespan"}, "gridcolor": EITHER.grid}
    figure = go.Figure(_waterfall(difference, unit))
    figure.update_layout(
        title={"text": difference_in_words(difference, unit), "subtitle": {"text": told}, "x": 0.01},
        title_font_size=16,
        font={"color": EITHER.text, "size": 12},
        template="none",
        paper_bgcolor=EITHER.paper,
        plot_bgcolor=EITHER.paper,
        height=380,
        margin={"l": 72, "r": 24, "t": 88, "b": 64},
        showlegend=False,
        modebar=MODEBAR,
        xaxis={"fixedrange": True},
        yaxis={**axis, "fixedrange": True, "range": stretch},
    )
    return figure


def difference_in_words(difference: Difference, unit: Unit) -> str:
    """How far the prediction was off, and which part has most of it."""
    share = difference.measured / difference.predicted - 1 if difference.predicted else 0.0
    if abs(share) < 5e-4:
        return f"Measured as predicted: {unit.show(difference.measured)}"
    frame = {name: getattr(difference, name) for name in _PART_WORDS}
    most = max(frame, key=lambda name: frame[name] * np.sign(difference.total))
    numbers = f"{unit.show(difference.measured)} instead of {unit.show(difference.predicted)}"
    return f"{abs(share):.1%} {'more' if share > 0 else 'less'} than predicted, most of it {most}: {numbers}"


def _points(residuals: Residuals, number: int, unit: Unit) -> go.Scatter:
    import plotly.graph_objects as go

    letter = KIND_LETTERS[residuals.kind]
    name = f" {unit.name}" if unit.name else ""
    return go.Scatter(
        x=residuals.start * unit.factor,
        y=residuals.difference * unit.factor,
        yaxis="y3",
        mode="markers",
        marker={"color": KIND_COLORS[residuals.kind], "size": 7, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
        legendgroup=residuals.kind.name,
        showlegend=False,
        customdata=residuals.place,
        hovertemplate=(
            f"<b>{letter} {KIND_TITLES[residuals.kind]}</b><br>rank %{{customdata[0]:d}}, stage %{{customdata[1]:d}}, "
            f"micro-batch %{{customdata[2]:d}}<br>%{{y:+.4~g}}{name} against the prediction<extra></extra>"
        ),
    )


def _waterfall(difference: Difference, unit: Unit) -> go.Waterfall:
    import plotly.graph_objects as go

    parts = [getattr(difference, name) * unit.factor for name in _PART_WORDS]
    ends = [difference.predicted * unit.factor, difference.measured * unit.factor]
    signed = [f"{part:+.3g}".replace("-", "−") if abs(part) > 1e-9 * ends[0] else "0" for part in parts]
    return go.Waterfall(
        x=["predicted", *_PART_WORDS.values(), "measured"],
        y=[ends[0], *parts, ends[1]],
        measure=["absolute", *["relative"] * len(parts), "total"],
        text=[f"{ends[0]:.4g}", *signed, f"{ends[1]:.4g}"],
        textposition="outside",
        increasing={"marker": {"color": MORE}},
        decreasing={"marker": {"color": LESS}},
        totals={"marker": {"color": WHOLE}},
        connector={"line": {"color": EITHER.grid, "width": 1}},
        hovertemplate=f"%{{x}}<br>%{{text}} {unit.name}<extra></extra>",
    )


def _stretch(difference: Difference, unit: Unit) -> list[float]:
    """From 0 where parts are large; where they are small, only what they move in, and a little below."""
    way = np.cumsum([difference.predicted, *(getattr(difference, name) for name in _PART_WORDS)]) * unit.factor
    low, high = float(way.min()), float(way.max())
    room = max(high - low, 0.02 * high)
    return [max(0.0, low - 2 * room), high + 0.35 * room]
