"""One schedule at one size under given costs: all that a comparison says of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import peak_bytes
from explorer.core import Category, Costs, Events, Graph, Program, RankShare, Trace, graph_of
from explorer.core.units import bytes_in_words
from explorer.errors import ExplorerError, ScheduleError
from explorer.schedules import REGISTRY, schedule
from explorer.simulate import modelled_memory, simulate, time_slots

_SMALL = 4096  # pairs of stage and micro-batch of a program that may be kept: with its graph half a megabyte
_LEAST = 1e-9  # of a makespan: what saves less is as quick
_NAN = float("nan")


class Point(NamedTuple):
    """Where a schedule is looked at.

    Attributes:
        schedule: name in the registry.
        n_ranks: pipeline ranks.
        n_micro_batches: micro-batches in a step.
        n_chunks: stages a rank; None for the fewest the schedule has.
    """

    schedule: str
    n_ranks: int
    n_micro_batches: int
    n_chunks: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What becomes of a schedule at a point; numbers are NaN, and counts 0, where it does not exist.

    Attributes:
        schedule, n_ranks, n_micro_batches, n_chunks: the point, its chunks as they are.
        makespan: seconds of a step.
        seconds_per_micro_batch: makespan ÷ micro-batches, which can be compared where these differ.
        bubble_ratio: idle time as a share of ranks × makespan: what of the machine is wasted.
        bubble_overhead: idle time over busy time: what is to be paid on top of the work. 1F1B gives (P−1)/(M+P−1) by
            the first measure, (P−1)/M by the second.
        peak_bytes: the most that any rank holds at once; 0 where the costs name no bytes.
        peak_in_flight: the most (stage, micro-batch) pairs that any rank holds at once.
        messages: between ranks, in a step.
        bytes_sent: that they carry.
        weight_copies: how many times its share of the weights the fullest rank keeps.
        splits_backward: whether it needs backward cut into I and W.
        legal: whether it exists at this point, and within the memory limit if there is one.
        reason: why it is not legal; "" if it is.
    """

    schedule: str
    n_ranks: int
    n_micro_batches: int
    n_chunks: int
    makespan: float = _NAN
    seconds_per_micro_batch: float = _NAN
    bubble_ratio: float = _NAN
    bubble_overhead: float = _NAN
    peak_bytes: int = 0
    peak_in_flight: int = 0
    messages: int = 0
    bytes_sent: int = 0
    weight_copies: float = _NAN
    splits_backward: bool = False
    legal: bool = True
    reason: str = ""


def outcome(point: Point, costs: RankShare, *, memory_limit: float | None = None) -> Outcome:
    """What becomes of a schedule at `point`; where it does not exist, or needs too much, with the reason.

    Every rank has the same work whatever the schedule. A schedule that searches within a limit is told the costs, and
    the bytes that are left for activations.

    Args:
        point: where to look; its schedule is in the registry.
        costs: of a rank's share.
        memory_limit: bytes of a rank, for everything; None: any number.
    """
    try:
        graph = _best_graph(point, costs, memory_limit)
        return measured(graph, costs, memory_limit=memory_limit, name=point.schedule)
    except ExplorerError as error:
        chunks = REGISTRY[point.schedule].n_chunks if point.n_chunks is None else point.n_chunks
        name, n_ranks, n_micro_batches, _ = point
        where = Outcome(schedule=name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=chunks)
        return replace(where, legal=False, reason=str(error))


def simulated(point: Point, costs: RankShare, *, memory_limit: float | None = None) -> Trace:
    """The trace behind an `outcome`, with its messages.

    Raises:
        ScheduleError: if the schedule does not exist there.
        CostError: if a cost has the wrong shape.
    """
    program = _best_graph(point, costs, memory_limit).program
    return simulate(program, costs.for_program(program))


def measured(graph: Graph, costs: RankShare, *, memory_limit: float | None, name: str) -> Outcome:
    """What the program of `graph` comes to under `costs`.

    Raises:
        CostError: if a cost has the wrong shape.
    """
    program = graph.program
    trace = _swept(graph, costs)
    peaks = peak_bytes(trace)
    sent = (trace.costs or Costs()).bytes_of_messages(graph)
    reason = "" if memory_limit is None or peaks.max(initial=0) <= memory_limit else _too_much(peaks, memory_limit)
    return Outcome(
        schedule=name,
        n_ranks=program.n_ranks,
        n_micro_batches=program.n_micro_batches,
        n_chunks=max(program.n_stages // program.n_ranks, 1),
        makespan=trace.makespan,
        seconds_per_micro_batch=trace.makespan / program.n_micro_batches,
        bubble_ratio=trace.bubble_ratio,
        bubble_overhead=trace.bubble_overhead,
        peak_bytes=int(peaks.max(initial=0)),
        peak_in_flight=int(trace.peak_in_flight.max(initial=0)),
        messages=len(graph.messages),
        bytes_sent=int(sent.sum()),
        weight_copies=_weight_copies(program),
        splits_backward=program.splits_backward,
        legal=not reason,
        reason=reason,
    )


def search_options(point: Point, costs: RankShare, memory_limit: float | None) -> dict[str, Any]:
    """What a schedule that searches is told, so that it finds the quickest order that fits; nothing for others.

    It is told the costs, and what a limit leaves for activations. A search is greedy, and may do better told less: no
    limit where it fits without one, which it would fill for nothing, or no costs.

    Raises:
        ScheduleError: if the schedule does not exist at `point`.
        CostError: if a cost has the wrong shape.
    """
    if "costs" not in REGISTRY[point.schedule].options:
        return {}
    has_choice = memory_limit is not None or _is_small(point)
    return _search(point, costs, memory_limit).told if has_choice else {"costs": costs}


def _best_graph(point: Point, costs: RankShare, memory_limit: float | None) -> Graph:
    """The schedule at `point`, searched with these costs where it searches."""
    searches = "costs" in REGISTRY[point.schedule].options
    return _search(point, costs, memory_limit).graph if searches else _graph(point)


class _Found(NamedTuple):
    """What a search was told, what it found, and what that comes to."""

    told: dict[str, Any]
    graph: Graph
    trace: Trace


def _search(point: Point, costs: RankShare, memory_limit: float | None) -> _Found:
    """The quickest of what is found with costs, without, and within the limit; of those that fit, if any does."""
    best = _found(point, costs, {"costs": costs})
    others: list[dict[str, Any]] = [{}] if _is_small(point) else []
    left = None if memory_limit is None else _left_for_activations(best.trace, memory_limit)
    if left is not None and "memory_limit" in REGISTRY[point.schedule].options:
        others.append({"costs": costs, "memory_limit": left})
    for told in others:
        with contextlib.suppress(ScheduleError):  # within so little it may find nothing
            other = _found(point, costs, told)
            if _is_better(other.trace, best.trace, memory_limit):
                best = other
    return best


def _found(point: Point, costs: RankShare, told: dict[str, Any]) -> _Found:
    graph = graph_of(_build(point, **told))
    return _Found(told, graph, _swept(graph, costs))


def _is_better(other: Trace, best: Trace, memory_limit: float | None) -> bool:
    """Whether `other` fits where `best` does not, or both do or do not and it is quicker."""
    fits = [memory_limit is None or peak_bytes(one).max(initial=0) <= memory_limit for one in (other, best)]
    return fits[0] if fits[0] != fits[1] else other.makespan < best.makespan * (1 - _LEAST)


def _left_for_activations(trace: Trace, memory_limit: float) -> float | None:
    """Bytes of the limit beside what a rank always holds; None if there are none, or no activations are known."""
    memory = trace.memory
    always = memory.take(memory.micro_batch < 0)
    besides = np.bincount(always.rank, always.delta, trace.n_ranks)
    besides = besides + peak_bytes(trace, category=Category.RECEIVE_BUFFERS)
    left = float(memory_limit - besides.max(initial=0))
    return left if len(always) < len(memory) and left > 0 else None


def _swept(graph: Graph, costs: RankShare) -> Trace:
    """As `simulate`, without what no measure here needs: rows of messages, and waits."""
    program = graph.program
    per_stage = costs.for_program(program)
    start, end, _ = time_slots(graph, per_stage, per_stage.slot_seconds(program))
    slot = program.slot_of_action
    events = Events.of(
        rank=program.rank_of_action,
        stage=program.stage,
        micro_batch=program.micro_batch,
        segment=program.segment,
        kind=program.kind,
        slot=slot,
        start=start[slot],
        end=end[slot],
    )
    return Trace(events, program, modelled_memory(graph, per_stage, start, end), per_stage)


def _build(point: Point, **options: Any) -> Program:
    name, n_ranks, n_micro_batches, n_chunks = point
    return schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks, **options)


def _graph(point: Point) -> Graph:
    """The graph at a point; small ones are kept, so that moving a cost slider sweeps them again and no more."""
    return _kept(point, REGISTRY[point.schedule].build) if _is_small(point) else graph_of(_build(point))


def _is_small(point: Point) -> bool:
    size = point.n_ranks * point.n_micro_batches * (point.n_chunks or 1)
    return isinstance(size, int) and 0 < size <= _SMALL


@lru_cache(maxsize=512)
def _kept(point: Point, build: Callable[..., Program]) -> Graph:  # by `build` too: a user may register a name again
    return graph_of(_build(point))


def _weight_copies(program: Program) -> float:
    """How many times its share of the weights the fullest rank keeps."""
    routes = program.placement.routes
    held = {(int(rank), stage) for route in routes for stage, rank in enumerate(route)}
    counts = np.bincount([rank for rank, _ in held], minlength=program.n_ranks)
    versions = 1 if program.weight_versions is None else program.weight_versions
    return float((counts * versions).max() * program.n_ranks / program.n_stages)


def _too_much(peaks: npt.NDArray[np.int64], limit: float) -> str:
    rank = int(np.argmax(peaks))
    held, more, most = map(bytes_in_words, (float(peaks[rank]), float(peaks[rank] - limit), limit))
    return f"rank {rank} holds {held} at its peak, {more} more than the limit of {most}"
