"""The timeline: what every rank does, when."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorer.core import Mark, Trace
from explorer.figures.bars import Bars, bars_of
from explorer.figures.columns import halved, packed, short_times, small_integers
from explorer.figures.hover import hover
from explorer.figures.palette import EITHER, KIND_COLORS, KIND_INKS, KIND_LETTERS, KIND_TITLES
from explorer.figures.units import Unit, time_unit
from explorer.figures.words import check_predicted, check_trace, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

_LANE, _SHARED, _TALLEST = 34, 16, 900  # pixels of a lane, more for each further bar that shares it, of all lanes
_THIN = 0.09  # of a lane, height of a message
_SEAM = "rgba(255,255,255,0.6)"  # between bars of one colour; seen on light and dark pages
MODEBAR = {"bgcolor": "rgba(0,0,0,0)", "color": EITHER.text, "remove": ["select2d", "lasso2d"]}


class TimelineInfo(NamedTuple):
    """All that a timeline shows.

    Attributes:
        title, subtitle: escaped.
        n_ranks: number of lanes.
        unit: of time.
        bars: of what happened, one entry a kind that occurs.
        predicted: the same of the prediction; empty if there is none.
        steps: number and start in seconds of each step; empty if there is but one.
        marks: what else is to be said of single moments, such as faults; texts escaped.
    """

    title: str
    subtitle: str
    n_ranks: int
    unit: Unit
    bars: list[Bars]
    predicted: list[Bars]
    steps: list[tuple[int, float]]
    marks: tuple[Mark, ...] = ()


def timeline(trace: Trace, *, predicted: Trace | None = None) -> go.Figure:
    """A bar for every action, a lane for every rank; messages are thin bars below the lane of their sender.

    Args:
        trace: what happened.
        predicted: what was to happen, drawn faint behind it.

    Raises:
        InputError: if `trace` or `predicted` is not a Trace, or they differ in their ranks.

    Example:
        >>> import explorer as ex
        >>> len(ex.timeline(ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8))).data)  # F and B
        2
    """
    import plotly.graph_objects as go

    info = timeline_info(trace, predicted=predicted)
    figure = go.Figure(timeline_traces(info))
    figure.update_layout(timeline_layout(info), xaxis=time_axis(info.unit), yaxis=lane_axis(info))
    return figure


def timeline_info(trace: Trace, *, predicted: Trace | None = None, span: float | None = None) -> TimelineInfo:
    """What `timeline` shows, as numbers and texts.

    Args:
        trace: what happened.
        predicted: what was to happen.
        span: seconds that the time axis holds; None for what the longer of the two takes.

    Raises:
        InputError: if `trace` or `predicted` is not a Trace, or they differ in their ranks.
    """
    trace = check_trace(trace, function="timeline")
    predicted = check_predicted(predicted, trace, function="timeline")
    shown = trace if len(trace.events) or predicted is None else predicted
    unit = time_unit(_span(shown, None), trace.clock)
    return TimelineInfo(
        title_of(trace),
        _subtitle(trace, predicted, unit),
        trace.n_ranks,
        unit,
        bars_of(trace, _span(trace, predicted) if span is None else span),
        [] if predicted is None else [bars._replace(text=[]) for bars in bars_of(predicted, np.inf)],
        _steps(trace),
        tuple(mark._replace(text=html.escape(mark.text)) for mark in trace.marks),
    )


def timeline_traces(info: TimelineInfo) -> list[go.Bar | go.Scatter]:
    """One plotly trace a kind for what happened and one for what was predicted, two for the steps, one for marks."""
    happened = {bars.kind for bars in info.bars}
    faint = [_trace(info, bars, faint=True, legend=bars.kind not in happened) for bars in info.predicted]
    solid = [_trace(info, bars, faint=False, legend=True) for bars in info.bars]
    steps = _step_marks(info) if info.steps else []
    return [*faint, *solid, *steps, *([_moments(info)] if info.marks else [])]


def timeline_layout(info: TimelineInfo) -> dict[str, Any]:
    """Layout but for the axes; transparent, with text that is readable on light and dark pages."""
    return {
        "title": {"text": info.title, "subtitle": {"text": info.subtitle}, "x": 0.01, "font": {"size": 16}},
        "barmode": "overlay",
        "bargap": 0,
        "template": "none",
        "font": {"color": EITHER.text, "size": 12},
        "paper_bgcolor": EITHER.paper,
        "plot_bgcolor": EITHER.paper,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 24, "t": 100, "b": 48},
        "height": lanes_height(info) + 148,
        "hoverlabel": {"font": {"size": 12}},
        "dragmode": "pan",
        "modebar": MODEBAR,
    }


def lane_height(info: TimelineInfo) -> int:
    """Pixels of a lane in which letters can be read, if there is room for such lanes."""
    parts = max((int(bars.share.parts.max(initial=1)) for bars in (*info.bars, *info.predicted)), default=1)
    return _LANE + _SHARED * (parts - 1)


def lanes_height(info: TimelineInfo) -> int:
    """Pixels that the lanes take."""
    return int(np.clip(lane_height(info) * info.n_ranks, 120, _TALLEST))


def time_axis(unit: Unit) -> dict[str, Any]:
    """The horizontal axis."""
    name = f"time ({unit.name})" if unit.name else "time"
    return {"title": {"text": name}, "gridcolor": EITHER.grid, "zeroline": False, "rangemode": "tozero"}


def lane_axis(info: TimelineInfo) -> dict[str, Any]:
    """The vertical axis: ranks from top to bottom."""
    n_ranks = info.n_ranks
    every = max(1, -(-n_ranks // 32))
    ranks = list(range(0, n_ranks, every))
    return {
        "range": [n_ranks - 0.5, -1.1 if info.steps else -0.5],
        "tickvals": ranks,
        "ticktext": [f"rank {rank}" for rank in ranks],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _span(trace: Trace, other: Trace | None) -> float:
    traces = [trace] if other is None else [trace, other]
    return max(
        (float(np.ptp([t.events.start.min(), t.events.end.max()])) for t in traces if len(t.events)), default=0.0
    )


def _subtitle(trace: Trace, predicted: Trace | None, unit: Unit) -> str:
    parts = []
    if len(trace.events):
        parts.append(f"makespan {unit.show(trace.makespan)}")
        parts.append(f"idle {trace.bubble_ratio:.1%} of ranks × makespan")
    if len(trace.steps) > 2:
        parts.append(f"median of {len(trace.steps) - 1} steps, the first left out")
    if predicted is not None:
        parts.append(f"faint behind: predicted, makespan {unit.show(predicted.makespan)}")
    return " · ".join(parts)


def _steps(trace: Trace) -> list[tuple[int, float]]:
    if len(trace.steps) <= 1:
        return []
    number, first_row = np.unique(trace.events.step, return_inverse=True)
    start = np.full(len(number), np.inf)
    np.minimum.at(start, first_row, trace.events.start)
    return list(zip(number.tolist(), start.tolist(), strict=True))


def _trace(info: TimelineInfo, bars: Bars, *, faint: bool, legend: bool) -> go.Bar:
    import plotly.graph_objects as go

    factor = info.unit.factor
    high = 0.94 if faint else 0.62 if info.predicted else 0.78
    return go.Bar(
        orientation="h",
        base=packed(short_times(bars.start * factor, bars.duration * factor)),
        x=halved(bars.duration * factor),
        **_across(bars, high),
        name=f"{KIND_LETTERS[bars.kind]} {KIND_TITLES[bars.kind]}",
        legendgroup=bars.kind.name,
        showlegend=legend,
        opacity=0.28 if faint else 1.0,
        marker={"color": KIND_COLORS[bars.kind], "line": {"width": 0.8 if bars.text else 0, "color": _SEAM}},
        text=bars.text or None,
        textposition="inside" if bars.text else "none",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": KIND_INKS[bars.kind], "size": 11},
        **hover(bars, info.unit, faint=faint),
    )


def _across(bars: Bars, high: float) -> dict[str, Any]:
    """Where each bar is across its lane, if one that has a lane for itself is `high` lanes high."""
    if bars.share.parts.max(initial=1) > 1:
        middle, height = bars.lane + high * bars.share.middle(), high / bars.share.parts
        return {"y": middle.astype(np.float32), "width": height.astype(np.float32)}
    ranks = np.floor(bars.lane)
    below = float((bars.lane - ranks).max(initial=0.0))
    place = {"y": small_integers(ranks), "width": _THIN if below else high}
    return {**place, "offset": below - _THIN / 2} if below else place


def _moments(info: TimelineInfo) -> go.Scatter:
    """A cross at each mark, its text on hovering."""
    import plotly.graph_objects as go

    return go.Scatter(
        x=[mark.time * info.unit.factor for mark in info.marks],
        y=[mark.rank for mark in info.marks],
        mode="markers",
        marker={"symbol": "x", "size": 12, "color": EITHER.text, "line": {"width": 1.5, "color": "white"}},
        name="faults",
        text=[mark.text for mark in info.marks],
        hovertemplate="<b>%{text}</b><br>rank %{y:d}, at %{x:.6~g}<extra></extra>",
    )


def _step_marks(info: TimelineInfo) -> list[go.Scatter]:
    """A line where each step begins, and its number."""
    import plotly.graph_objects as go

    starts = [start * info.unit.factor for _, start in info.steps]
    lines = go.Scatter(
        x=[x for start in starts for x in (start, start, None)],
        y=[info.n_ranks - 0.5, -1.1, None] * len(starts),
        mode="lines",
        line={"color": EITHER.text, "width": 1, "dash": "dot"},
    )
    numbers = go.Scatter(
        x=starts,
        y=[-0.78] * len(starts),
        mode="text",
        text=[f" step {number}" for number, _ in info.steps],
        textposition="middle right",
    )
    return [marks.update(name="steps", showlegend=False, hoverinfo="skip") for marks in (lines, numbers)]
