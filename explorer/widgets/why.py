"""Why ranks wait, and what would make the step shorter: one step of a trace, in words and bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis import Cause, aligned_step, critical_path, gains, idle_intervals, median_step, sensitivity
from explorer.analysis.idle_table import IdleCauses
from explorer.core import COMPUTE_KINDS, Kind, RankShare, Trace
from explorer.figures.palette import CAUSE_LOOKS
from explorer.figures.units import Unit, time_unit
from explorer.widgets.bubble import smaller_bubble
from explorer.widgets.markup import Markup, Part, bar, chip, element, table

_NAMES = tuple(cause.name.lower() for cause in Cause)
_MOST_RANKS = 16
_MOST_ROWS = 8
_GAIN = "#0fa574"
_PROMISES = {"exact": "", "bound": "at most ", "estimate": "about "}
_STRUCTURE = [Cause.FILL, Cause.DRAIN, Cause.UPSTREAM]  # what the schedule itself makes of equal stages
_MUCH = 0.5  # of the idle time, from which on it is told how to make the bubble smaller
_MOST_NAMED = 2  # that a cause names
_KINDS = {
    Kind.F.name: "all forwards (F)",
    Kind.B.name: "all backwards (B)",
    Kind.I.name: "all backwards for inputs (I)",
    Kind.W.name: "all backwards for weights (W)",
    Kind.R.name: "all recomputing (R)",
    Kind.U.name: "all updates (U)",
}
# in the order of the pieces that `critical_path` names
_PIECES = (
    "at work",
    "for messages on their way",
    "for messages behind others",
    "waiting for room",
    "between actions",
)


def why_page(trace: Trace, share: RankShare | None = None, *, memory_limit: float | None = None) -> Markup:
    """The causes of idle time in the trace's typical step, what removing each would gain, and where time goes.

    Of a run that is not over it is a step that is, or else as much as there is of the first, without what would help.

    Args:
        trace: any.
        share: of a rank, at which it is tried what would make the pipeline's own bubble smaller; None: it is not.
        memory_limit: bytes of a rank's device; None for any number.

    Raises:
        InputError: if its events are not of its program.
        ProgramError: if its program is incomplete or cannot finish.
    """
    *_, page = why_pieces(trace, share, memory_limit=memory_limit)
    return page


def why_pieces(trace: Trace, share: RankShare | None = None, *, memory_limit: float | None = None) -> Iterator[Markup]:
    """The work on `why_page` in pieces: nothing after each, and the page after the last."""
    whole = _whole_steps(trace)
    step = aligned_step(trace, step=median_step(whole))
    unit, over = time_unit(step.makespan, "wall"), _is_over(step)
    found = idle_intervals(step)
    idle, titles = found.totals().sum(axis=0), _titles(found)
    yield Markup()
    headline = element("p", _headline(step, idle, unit, titles) + _which(trace, whole, step), kind="headline")
    parts = [headline, element("div", _by_cause(idle, unit, titles), _by_rank(step, idle, unit), kind="columns")]
    yield Markup()
    if over:
        remedies = _remedies(step, unit)
        yield Markup()
        smaller = element("div", *_bubble(step, idle, share, memory_limit))
        yield Markup()
        parts.append(element("div", element("div", remedies, smaller), _levers(step, unit), kind="columns"))
        yield Markup()
        parts.append(element("p", _path(step, unit)))
    yield element("div", *parts, kind="why")


def _whole_steps(trace: Trace) -> Trace:
    """Of a run that goes on, or ended on its way, the steps of which most has run."""
    events = trace.events
    if not len(events):
        return trace
    n_run = np.bincount(events.step[np.isin(events.kind, COMPUTE_KINDS)], minlength=int(events.step.max()) + 1)
    whole = (n_run == n_run.max())[events.step]
    return trace if whole.all() else replace(trace, events=events.take(whole))


def _is_over(step: Trace) -> bool:
    n_run, n_all = (np.count_nonzero(np.isin(of.kind, COMPUTE_KINDS)) for of in (step.events, step.program))
    return bool(n_run >= n_all)


def _titles(found: IdleCauses) -> list[str]:
    """Every cause in words, a slow rank and a heavier stage with which."""
    titles = [CAUSE_LOOKS[name].title for name in _NAMES]
    program, seconds = found.program, found.seconds
    for cause, of_action, what in (
        (Cause.STRAGGLER, program.rank_of_action, "rank"),
        (Cause.IMBALANCE, program.stage, "stage"),
    ):
        rows = np.flatnonzero((found.cause == cause) & (found.fault >= 0))
        weight = np.bincount(of_action[found.fault[rows]], seconds[rows])
        worst = [one for one in np.argsort(-weight, kind="stable").tolist() if weight[one] > 0]
        if worst:
            slowed = any(found.put_there(int(found.step[row]), int(found.fault[row])) for row in rows.tolist())
            some = "s" if len(worst) > 1 else ""
            named = ", ".join(map(str, worst[:_MOST_NAMED])) + (" and others" if worst[_MOST_NAMED:] else "")
            by = ", by a fault" if slowed and cause == Cause.STRAGGLER else ""
            titles[cause] += f": {what}{some} {named}{by}"
    return titles


def _headline(step: Trace, idle: Any, unit: Unit, titles: list[str]) -> str:
    total, by_cause = idle.sum(), idle.sum(axis=0)
    if not total:
        return "No rank ever waits."
    share = total / (step.makespan * step.n_ranks)
    largest = np.argsort(-by_cause, kind="stable")[:2]
    because = ", ".join(f"{titles[one]} ({by_cause[one] / total:.0%})" for one in largest if by_cause[one])
    return f"Ranks wait {share:.1%} of the step, {unit.show(total)} of all ranks together. Mostly: {because}."


def _which(trace: Trace, whole: Trace, step: Trace) -> str:
    """Which of several steps is told of: the numbers above the picture are of their median; or that it goes on."""
    number = trace.steps.index(step.steps[0]) + 1
    if not _is_over(step):
        return f" This is what has run of step {number}, which is not over: what would help can be told of a whole one."
    if len(trace.steps) == 1:
        return ""
    if len(whole.steps) == 1:
        return f" This is step {number}, the only one that is over."
    return f" This is step {number} of {len(whole.steps)}{' that are over' if whole is not trace else ''}."


def _by_cause(idle: Any, unit: Unit, titles: list[str]) -> Markup:
    total, by_cause = idle.sum(), idle.sum(axis=0)
    rows = []
    for one in np.argsort(-by_cause, kind="stable").tolist():
        if by_cause[one] > 0:
            look = CAUSE_LOOKS[_NAMES[one]]
            share = by_cause[one] / total
            name = element("span", chip(look.letter, look.color), " ", titles[one])
            rows.append((name, unit.show(by_cause[one]), f"{share:.1%}", bar([Part(share, look.color)])))
    return table(("cause", "idle", "share", ""), rows, caption="Why ranks wait")


def _by_rank(step: Trace, idle: Any, unit: Unit) -> Markup:
    ranks = range(step.n_ranks)
    shown = ranks if len(ranks) <= _MOST_RANKS else np.linspace(0, len(ranks) - 1, _MOST_RANKS).round().astype(int)
    widest = idle.sum(axis=1).max() or 1.0
    rows = [(f"rank {rank}", unit.show(idle[rank].sum()), bar(_causes(idle[rank], widest, unit))) for rank in shown]
    some = "" if len(ranks) <= _MOST_RANKS else f" ({len(rows)} of {len(ranks)})"
    return table(("", "idle", ""), rows, caption=f"Idle time of each rank{some}")


def _causes(idle: Any, widest: float, unit: Unit) -> list[Part]:
    looks = [CAUSE_LOOKS[name] for name in _NAMES]
    return [
        Part(seconds / widest, look.color, look.letter, f"{look.title}: {unit.show(seconds)}")
        for seconds, look in zip(idle.tolist(), looks, strict=True)
        if seconds > 0
    ]


def _bubble(step: Trace, idle: Any, share: RankShare | None, memory_limit: float | None) -> list[Markup]:
    """What would make the bubble smaller, where most of the idle time is that."""
    total, structure = float(idle.sum()), float(idle[:, _STRUCTURE].sum())
    if share is None or not step.program.has_backward or structure <= _MUCH * total:
        return []
    all_of_it = f"{structure / total:.0%}" == "100%"
    head = "All" if all_of_it else f"{structure / total:.0%}"
    none = ": no stage, rank or link is at fault." if all_of_it else ", for which no stage, rank or link is at fault."
    smaller = smaller_bubble(step.program, share, memory_limit=memory_limit)
    return [element("p", f"{head} of the waiting is the schedule's own bubble{none} ", smaller)]


def _remedies(step: Trace, unit: Unit) -> Markup:
    found: list[dict[Any, Any]] = gains(step).head(_MOST_ROWS).to_dict("records")
    if not found:
        return element("p", "No rank waits for anything that could be removed: only less work makes the step shorter.")
    most = max(one["gain"] for one in found)
    rows = [
        (
            one["remedy"],
            f"{_PROMISES[one['promise']]}{unit.show(one['gain'])}",
            bar([Part(one["gain"] / most, CAUSE_LOOKS["fill"].color if one["promise"] == "bound" else _GAIN)]),
        )
        for one in found
    ]
    return table(("if …", "the step gains", ""), rows, caption="What would help")


def _levers(step: Trace, unit: Unit) -> Markup:
    found: list[dict[Any, Any]] = sensitivity(step).head(_MOST_ROWS).to_dict("records")
    most = max((one["gain"] for one in found), default=0.0)
    rows = [
        (
            _KINDS.get(one["name"], one["name"]) if one["of"] == "kind" else one["name"],
            unit.show(one["gain"]),
            bar([Part(one["gain"] / most, _GAIN)]),
        )
        for one in found
        if one["gain"] > 0
    ]
    return table(("10 % less of …", "the step gains", ""), rows, caption="What the step depends on")


def _path(step: Trace, unit: Unit) -> str:
    path = critical_path(step)
    seconds = np.bincount(path["what"].cat.codes, weights=path["seconds"], minlength=len(_PIECES))
    longest = np.argsort(-seconds, kind="stable")
    parts = ", ".join(
        f"{unit.show(float(seconds[one]))} {_PIECES[one]}" for one in longest.tolist() if seconds[one] > 0
    )
    return f"The critical path, the longest chain of what had to wait for one another: {parts}."
