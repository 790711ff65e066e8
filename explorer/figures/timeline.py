"""The timeline: what every rank does, when."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Mark, Trace
from explorer.core.events import Stream
from explorer.figures.palette import EITHER, KIND_COLORS, KIND_INKS, KIND_LETTERS, KIND_TITLES
from explorer.figures.units import Unit, time_unit
from explorer.figures.words import check_predicted, check_trace, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_LETTERED = 3000  # bars; with more there is no room for text, and it would only make the file large
_WIDTH = 900.0  # pixels that a timeline is about wide
_LETTER, _NUMBERED, _STAGED = 10.0, 20.0, 32.0  # pixels that "F", "F12" and "3F12" need
_LANE, _TALLEST = 34, 900  # pixels
_MOST_LETTERED_RANKS = 48  # with more, a lane is too low for text
_SEAM = "rgba(255,255,255,0.6)"  # between bars of one colour; seen on light and dark pages
MODEBAR = {"bgcolor": "rgba(0,0,0,0)", "color": EITHER.text, "remove": ["select2d", "lasso2d"]}


class Bars(NamedTuple):
    """Bars of one kind; all columns (n,).

    Attributes:
        kind: of all of them.
        lane: float64, rank they are drawn on, and a little more for what is drawn below it.
        stage, micro_batch: int32, −1 = does not apply.
        start, duration, wait: float64, seconds.
        text: str, what is written in each; empty where there is no room for any.
    """

    kind: Kind
    lane: npt.NDArray[np.float64]
    stage: npt.NDArray[np.int32]
    micro_batch: npt.NDArray[np.int32]
    start: npt.NDArray[np.float64]
    duration: npt.NDArray[np.float64]
    wait: npt.NDArray[np.float64]
    text: list[str]


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


def timeline_info(trace: Trace, *, predicted: Trace | None = None) -> TimelineInfo:
    """What `timeline` shows, as numbers and texts."""
    trace = check_trace(trace, function="timeline")
    predicted = check_predicted(predicted, trace, function="timeline")
    shown = trace if len(trace.events) or predicted is None else predicted
    unit = time_unit(_span(shown, None), trace.clock)
    return TimelineInfo(
        title_of(trace),
        _subtitle(trace, predicted, unit),
        trace.n_ranks,
        unit,
        _bars_of(trace, _span(trace, predicted)),
        [] if predicted is None else [bars._replace(text=[]) for bars in _bars_of(predicted, np.inf)],
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


def lanes_height(info: TimelineInfo) -> int:
    """Pixels that the lanes take."""
    return int(np.clip(_LANE * info.n_ranks, 120, _TALLEST))


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


def _bars_of(trace: Trace, span: float) -> list[Bars]:
    """A trace's bars by kind; text where they are long enough for it, if the whole is `span` seconds long."""
    events = trace.events
    lettered = len(events) <= MOST_LETTERED and trace.n_ranks <= _MOST_LETTERED_RANKS and np.isfinite(span)
    found = []
    for kind in (Kind(int(code)) for code in np.unique(events.kind)):
        rows = np.flatnonzero(events.kind == kind)
        below = np.where(events.stream[rows] == Stream.COMPUTE, 0.0, 0.44)
        bars = Bars(
            kind,
            np.asarray(events.rank[rows] + below, np.float64),
            events.stage[rows],
            events.micro_batch[rows],
            events.start[rows],
            events.end[rows] - events.start[rows],
            events.wait[rows],
            [],
        )
        writes = lettered and not below.any() and span > 0
        found.append(bars._replace(text=_texts(bars, _WIDTH / span, trace)) if writes else bars)
    return found


def _texts(bars: Bars, pixels_per_second: float, trace: Trace) -> list[str]:
    """As much of stage, letter and micro-batch as fits; the stage only where a rank has several."""
    letter = KIND_LETTERS[bars.kind]
    staged = trace.program.n_stages > trace.n_ranks
    texts = []
    widths = (bars.duration * pixels_per_second).tolist()
    for width, stage, micro_batch in zip(widths, bars.stage.tolist(), bars.micro_batch.tolist(), strict=True):
        number = "" if micro_batch < 0 else str(micro_batch)
        if staged and width >= _STAGED:
            texts.append(f"{stage}{letter}{number}")
        elif width >= _NUMBERED:
            texts.append(f"{letter}{number}")
        else:
            texts.append(letter if width >= _LETTER else "")
    return texts if any(texts) else []


def _trace(info: TimelineInfo, bars: Bars, *, faint: bool, legend: bool) -> go.Bar:
    import plotly.graph_objects as go

    factor = info.unit.factor
    thin = bool(len(bars.lane)) and bool(bars.lane[0] % 1)
    duration = np.asarray(bars.duration * factor, np.float32)
    high = 0.94 if faint else 0.62 if info.predicted else 0.78
    return go.Bar(
        orientation="h",
        base=_short(bars.start * factor, duration),
        x=duration,
        y=bars.lane.astype(np.float32) if thin else bars.lane.astype(np.uint16),
        width=0.09 if thin else high,
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
        # hover needs no more digits than float32 has, and the file is half as large
        customdata=np.stack([bars.stage, bars.micro_batch, duration, bars.wait * factor], axis=1).astype(np.float32),
        hovertemplate=_hover(bars.kind, info.unit, faint=faint),
    )


def _short(
    start: npt.NDArray[np.float64], duration: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Half the bytes where that moves no bar by more than a hundredth of the shortest."""
    shortest = float(duration[duration > 0].min(initial=np.inf))
    short = start.astype(np.float32)
    return short if float(np.abs(short - start).max(initial=0.0)) < shortest / 100 else start


def _hover(kind: Kind, unit: Unit, *, faint: bool) -> str:
    name = f" {unit.name}" if unit.name else ""
    micro_batch = "" if kind in (Kind.G, Kind.U) else ", micro-batch %{customdata[1]:d}"
    return (
        f"<b>{KIND_LETTERS[kind]} {KIND_TITLES[kind]}</b>{' (predicted)' if faint else ''}<br>"
        f"stage %{{customdata[0]:d}}{micro_batch}<br>"
        f"start %{{base:.6~g}}{name}<br>takes %{{customdata[2]:.4~g}}{name}<br>"
        f"waited %{{customdata[3]:.4~g}}{name}<extra></extra>"
    )


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
