"""What would make the pipeline's own bubble smaller, and by how much: simulated, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.core import Program, RankShare, graph_of
from explorer.figures.units import time_unit
from explorer.planner import Outcome, Point
from explorer.planner.points import measured, outcome
from explorer.schedules import REGISTRY

# with the smallest bubbles of those that keep one copy of the weights; Compare shows all
_TRIED = ("interleaved_1f1b", "zb_h1", "zb_h2", "zb_v", "v_half", "dualpipev", "interleaved_zb")
_MOST_TRIED = 2048  # pairs of stage and micro-batch of a program beside which others are tried
_LEAST = 2e-3  # of a step: less is no gain that anybody would see
_MORE = 1.05  # times as much held at the peak, from which on it is told


def smaller_bubble(program: Program, share: RankShare, *, memory_limit: float | None = None) -> str:
    """What twice the micro-batches, and the best of other schedules, would bring; "" if nothing.

    Args:
        program: whose bubble it is.
        share: of a rank, the same for every schedule.
        memory_limit: bytes of a rank's device; None for any number.
    """
    now = measured(graph_of(program), share, memory_limit=None, name=program.name)
    found = [*_more_micro_batches(now, share, memory_limit), *_other_schedule(now, share, memory_limit)]
    if not found:
        return ""
    return f"By simulation, {'; '.join(found)}."


def _more_micro_batches(now: Outcome, share: RankShare, limit: float | None) -> Iterator[str]:
    if now.schedule not in REGISTRY:
        return
    more = 2 * now.n_micro_batches
    point = Point(now.schedule, now.n_ranks, more, now.n_chunks if REGISTRY[now.schedule].any_chunks else None)
    then = outcome(point, share, memory_limit=limit)
    gain = 1 - then.seconds_per_micro_batch / now.seconds_per_micro_batch
    if then.legal and gain > _LEAST:
        yield (
            f"{more} micro-batches of the same size instead of {now.n_micro_batches} leave ranks idle for "
            f"{then.bubble_ratio:.1%} of the step instead of {now.bubble_ratio:.1%}, and each takes {gain:.1%} less"
        )


def _other_schedule(now: Outcome, share: RankShare, limit: float | None) -> Iterator[str]:
    if now.n_ranks * now.n_micro_batches > _MOST_TRIED:
        return
    names = [name for name in _TRIED if name != now.schedule]
    tried = [outcome(Point(name, now.n_ranks, now.n_micro_batches), share, memory_limit=limit) for name in names]
    legal = [one for one in tried if one.legal and one.makespan < (1 - _LEAST) * now.makespan]
    if not legal:
        return
    best = min(legal, key=lambda one: (one.makespan, _held(one)))
    unit = time_unit(now.makespan, "wall")
    gain = now.makespan - best.makespan
    yield (
        f"{REGISTRY[best.schedule].title} takes {unit.show(best.makespan)} instead of {unit.show(now.makespan)} "
        f"({gain / now.makespan:.1%} less), idle for {best.bubble_ratio:.1%} of it{_price(now, best)}"
    )


def _held(one: Outcome) -> float:
    """The most that a rank holds at once, in whole micro-batches of its share."""
    return one.peak_in_flight / one.n_chunks


def _price(now: Outcome, then: Outcome) -> str:
    if _held(then) <= _MORE * _held(now):
        return ""
    return f", but holds up to {_held(then):.3g} micro-batches a rank instead of {_held(now):.3g}"
