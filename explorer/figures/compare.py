"""Traces one above the other on one time axis, each begun at 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorer.analysis import aligned_step
from explorer.core import Trace
from explorer.errors import InputError
from explorer.figures.palette import EITHER, LANES
from explorer.figures.timeline import (
    MODEBAR,
    TimelineInfo,
    lane_axis,
    lane_height,
    time_axis,
    timeline_info,
    timeline_traces,
)
from explorer.figures.units import Unit, time_unit
from explorer.figures.words import CLOCKS, check_trace, plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST = 8  # traces that a screen shows at once
_TALLEST, _LOWEST = 1000, 6  # pixels of all lanes, and of a lane at least
_CAPTION, _TOP, _BOTTOM = 30, 96, 48  # pixels
_SAME = 5e-4  # shares below which makespans are called equal


class Panel(NamedTuple):
    """One trace of a comparison.

    Attributes:
        name: escaped.
        caption: makespan, idle share and size in words, escaped.
        bars: of its step, begun at 0.
        makespan: seconds.
    """

    name: str
    caption: str
    bars: TimelineInfo
    makespan: float


class CompareInfo(NamedTuple):
    """All that a comparison shows.

    Attributes:
        title: which takes how much longer, in words, escaped.
        subtitle: how the traces were aligned.
        unit: of time, for all.
        panels: from top to bottom.
    """

    title: str
    subtitle: str
    unit: Unit
    panels: list[Panel]


def compare(*traces: Trace, names: Sequence[str] | None = None, step: int | None = None) -> go.Figure:
    """Two or more traces one above the other on one time axis, one step of each, all begun at 0.

    The shaded lanes end where the step ends, so that idle time shows in every trace.

    Args:
        traces: simulated, executed, recorded or imported, of any programs.
        names: one a trace; None: those of their programs, with the kind of clock where these do not tell them apart.
        step: number of the step in each; None for that of median makespan, the first left out.

    Raises:
        InputError: if there are fewer than two traces or more than eight, one is no Trace or has no such step, or
            there is not one name for each.

    Example:
        >>> import explorer as ex
        >>> made = [ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=8)) for name in ("1f1b", "zb_h1")]
        >>> ex.compare(*made).layout.title.text
        'zb_h1 takes 18.2% less time than 1f1b: 27 instead of 33'
    """
    import plotly.graph_objects as go

    info = compare_info(*traces, names=names, step=step)
    figure = go.Figure(compare_traces(info))
    figure.update_layout(compare_layout(info))
    return figure


def compare_info(*traces: Trace, names: Sequence[str] | None = None, step: int | None = None) -> CompareInfo:
    """What `compare` shows, as numbers and texts."""
    if not 2 <= len(traces) <= _MOST:
        raise InputError(
            f"compare shows 2 to {_MOST} traces; got {len(traces)}; give them one after another: compare(one, other)",
            argument="traces",
        )
    steps = [aligned_step(check_trace(trace, function="compare"), step=step) for trace in traces]
    called = _names(steps, names)
    makespans = [one.makespan for one in steps]
    clock = next((one.clock for one in steps if one.clock != "simulated"), "simulated")
    unit = time_unit(max(makespans), clock)
    panels = [
        Panel(
            name,
            _caption(one, unit),
            timeline_info(one, span=max(makespans))._replace(unit=unit, steps=[]),
            one.makespan,
        )
        for name, one in zip(called, steps, strict=True)
    ]
    which = "" if all(len(trace.steps) == 1 for trace in traces) else _which(step)
    return CompareInfo(makespans_in_words(called, makespans, unit), f"{which}each begun at 0", unit, panels)


def compare_traces(info: CompareInfo) -> list[go.Bar]:
    """At most one plotly trace a panel and kind; each kind is in the legend once."""
    drawn, seen = [], set()
    for number, panel in enumerate(info.panels):
        for bars in timeline_traces(panel.bars):
            bars.showlegend = bool(bars.showlegend) and bars.legendgroup not in seen
            seen.add(bars.legendgroup)
            drawn.append(bars.update(yaxis=f"y{number + 1}"))
    return drawn


def makespans_in_words(names: Sequence[str], makespans: Sequence[float], unit: Unit) -> str:
    """Which of some takes how much longer: of two, the second against the first; of more, the fastest and slowest."""
    fast, slow = int(np.argmin(makespans)), int(np.argmax(makespans))
    one, other = (0, 1) if len(names) == 2 else (slow, fast)
    before, after = makespans[one], makespans[other]
    share = after / before - 1 if before else 0.0
    if abs(share) < _SAME:
        them = f"{names[0]} and {names[1]}" if len(names) == 2 else f"all {len(names)}"
        return f"{them} take equally long: {unit.show(after)}"
    numbers = f"{unit.show(after)} instead of {unit.show(before)}"
    more = f"{abs(share):.1%} {'more' if share > 0 else 'less'} time than {names[one]}"
    return (
        f"{names[other]} takes {more}: {numbers}"
        if len(names) == 2
        else (f"{names[other]} is the fastest of {len(names)}, with {more}, the slowest: {numbers}")
    )


def _names(steps: Sequence[Trace], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        if isinstance(names, str) or len(names) != len(steps):
            raise InputError(
                f"names are a list of {len(steps)}, one for each trace; got {str(names)[:40]!r}; or leave them out",
                argument="names",
            )
        return [plain(str(name)) for name in names]
    called = [one.program.name for one in steps]
    if len(set(called)) < len(called):
        called = [f"{name}, {_CLOCK_WORDS.get(one.clock, one.clock)}" for name, one in zip(called, steps, strict=True)]
    if len(set(called)) < len(called):
        called = [f"{name} ({number + 1})" for number, name in enumerate(called)]
    return [plain(name) for name in called]


_CLOCK_WORDS = {"simulated": "simulated", "virtual": "measured", "real": "measured on real clocks"}


def _caption(one: Trace, unit: Unit) -> str:
    clock = "" if one.clock == "simulated" else f" · {plain(CLOCKS.get(one.clock, one.clock))}"
    idle = f"makespan {unit.show(one.makespan)} · idle {one.bubble_ratio:.1%} of ranks × makespan"
    return f"{idle} · {one.program.n_micro_batches} micro-batches{clock}"


def _which(step: int | None) -> str:
    return "the step of median makespan, " if step is None else f"step {step}, "


def _heights(info: CompareInfo) -> list[int]:
    """Pixels that each panel's lanes take."""
    n_lanes = sum(panel.bars.n_ranks for panel in info.panels)
    lane = int(np.clip(_TALLEST / n_lanes, _LOWEST, max(lane_height(panel.bars) for panel in info.panels)))
    return [max(lane * panel.bars.n_ranks, 24) for panel in info.panels]


def compare_layout(info: CompareInfo, *, below: int = 0) -> dict[str, Any]:
    """Axes, captions and shaded lanes; `below`: pixels left free under the last panel."""
    heights = _heights(info)
    inner = sum(heights) + _CAPTION * len(heights) + below
    layout: dict[str, Any] = {
        "title": {"text": info.title, "subtitle": {"text": info.subtitle}, "x": 0.01, "font": {"size": 16}},
        **{"barmode": "overlay", "bargap": 0, "template": "none", "dragmode": "pan", "modebar": MODEBAR},
        **{"paper_bgcolor": EITHER.paper, "plot_bgcolor": EITHER.paper},
        "font": {"color": EITHER.text, "size": 12},
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 24, "t": _TOP, "b": _BOTTOM},
        "height": inner + _TOP + _BOTTOM,
        "uniformtext": {"minsize": 6, "mode": "hide"},
        "xaxis": {**time_axis(info.unit), "anchor": f"y{len(heights)}"},
        **{"annotations": [], "shapes": []},
    }
    top = inner
    for number, (panel, height) in enumerate(zip(info.panels, heights, strict=True)):
        top -= _CAPTION
        layout[f"yaxis{number + 1}"] = {**lane_axis(panel.bars), "domain": [(top - height) / inner, top / inner]}
        layout["annotations"].append(_heading(panel, top / inner))
        layout["shapes"].append(_lanes(panel, number, info.unit))
        top -= height
    return layout


def _heading(panel: Panel, y: float) -> dict[str, Any]:
    place = {"x": 0, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {**place, "text": f"<b>{panel.name}</b>   {panel.caption}", "showarrow": False}


def _lanes(panel: Panel, number: int, unit: Unit) -> dict[str, Any]:
    """The lanes as long as the step: what no bar covers in them is idle."""
    across = {"y0": -0.5, "y1": panel.bars.n_ranks - 0.5, "yref": f"y{number + 1}"}
    along = {"x0": 0, "x1": panel.makespan * unit.factor, "xref": "x"}
    return {
        "type": "rect",
        "layer": "below",
        "line": {"width": 0},
        "fillcolor": LANES,
        **across,
        **along,
    }
