"""A step taken apart into what its makespan is made of, so that it can be put together again with other parts.

A step is laid out anew from four ingredients:

    order      which slot follows which on each rank, and what waits for what: the program's graph
    durations  of each slot
    transfers  of each message: from the end of what makes it to its arrival
    gaps       before each slot: how long its rank idled though all that it waits for was there

With all four its own, a step comes out as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import MESSAGE_KINDS, Events, Graph, Kind, Program, Trace, Waits, graph_of, is_message
from explorer.core.action import among
from explorer.core.rules import BACKWARD_MESSAGE
from explorer.errors import InputError
from explorer.lowering.columns import rebuilt
from explorer.simulate import slot_times

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_COLUMNS = ("kind", "stage", "micro_batch", "segment", "peer")
_IDENTITY = ("rank_of_action", "segment", "micro_batch", "stage", "kind")  # the last counts first


class Order(NamedTuple):
    """A program's graph, and names for its parts that hold in any other order of the same actions.

    Attributes:
        graph: of the program without its messages.
        identity: (n_actions,) the number each action has once all are sorted by kind, stage and micro-batch.
        slot_identity: (n_slots,) the lowest of those in each slot.
    """

    graph: Graph
    identity: Indices
    slot_identity: Indices


class Ingredients(NamedTuple):
    """What a step is made of besides its order; all (n_actions,) float64 seconds, by identity.

    Attributes:
        durations: of the slots.
        transfers: of the message that an action sends; 0 where it sends none.
        gaps: before the slots.
    """

    durations: Floats
    transfers: Floats
    gaps: Floats


def order_of(program: Program, *, without: Sequence[Kind] = ()) -> Order:
    """The order in which `program` computes.

    Args:
        program: any.
        without: kinds that are left out, as messages are.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.
    """
    graph = graph_of(_without(program, is_message(program) | among(program.kind, *without)))
    bare = graph.program
    identity = np.empty(bare.n_actions, np.int64)
    identity[np.lexsort([getattr(bare, name) for name in _IDENTITY])] = np.arange(bare.n_actions)
    return Order(graph, identity, np.minimum.reduceat(identity, bare.slot_offsets[:-1]))


def taken_apart(order: Order, step: Trace) -> Ingredients:
    """The ingredients of one whole step.

    Raises:
        InputError: if the step does not hold all actions of its program.
    """
    graph = order.graph
    start, end = _slot_times(graph.program, step.events)
    origin = float(start[_counted(graph.program)].min(initial=np.inf))
    start, end = start - origin, end - origin
    moved = _transfers(graph, step.events, start, end, origin)
    gaps = start - _earliest(graph, start, end, _lags(graph, moved))
    transfers = np.zeros(graph.program.n_actions)
    transfers[order.identity[graph.dependencies.source[graph.messages]]] = moved
    return Ingredients(_by_identity(order, end - start), transfers, _by_identity(order, gaps))


def laid_again(order: Order, parts: Ingredients) -> float:
    """Makespan in seconds of `parts` in this order."""
    graph = order.graph
    gaps = parts.gaps[order.slot_identity]
    lags = _lags(graph, parts.transfers[order.identity[graph.dependencies.source[graph.messages]]])
    # a gap is laid as a part of its slot; who waits for the slot's start waits for the gap too
    early = graph.dependencies.from_start
    lags[early] += gaps[graph.source_slot[early]]
    start, end = slot_times(graph, parts.durations[order.slot_identity] + gaps, lags)
    counted = _counted(graph.program)
    return float(end[counted].max() - (start + gaps)[counted].min())


def _without(program: Program, left_out: npt.NDArray[np.bool_]) -> Program:
    """The other actions only; further waits of what is left out go with it."""
    if not left_out.any():
        return program
    rows = np.flatnonzero(~left_out)
    moved = np.full(program.n_actions, -1, np.int64)
    moved[rows] = np.arange(len(rows))
    columns = {name: getattr(program, name)[rows] for name in _COLUMNS}
    if program.waits is not None:
        after, before, lag = program.waits
        both = (moved[after] >= 0) & (moved[before] >= 0)
        program = replace(program, waits=Waits(after[both], before[both], lag[both]))
    return rebuilt(program, columns, slot=program.slot_of_action[rows], rank=program.rank_of_action[rows], moved=moved)


def _slot_times(program: Program, events: Events) -> tuple[Floats, Floats]:
    """Start and end of each slot, both (n_slots,) seconds."""
    kinds = set(np.unique(program.kind).tolist()) - set(MESSAGE_KINDS)
    rows = np.flatnonzero(among(events.kind, *(Kind(kind) for kind in kinds)))
    theirs: list[npt.NDArray[Any]] = [events.rank, events.segment, events.micro_batch, events.stage, events.kind]
    rows = rows[np.lexsort([column[rows] for column in theirs])]
    ours: list[npt.NDArray[Any]] = [getattr(program, name) for name in _IDENTITY]
    order = np.lexsort(ours)
    same = len(rows) == len(order) and all(
        np.array_equal(column[rows], mine[order]) for column, mine in zip(theirs, ours, strict=True)
    )
    if not same:
        raise InputError(
            f"a step is taken apart once it is whole, with each action of its program once; got {len(rows)} of the "
            f"{len(order)} actions; give a trace whose steps have ended",
            argument="measured",
        )
    start, end = np.empty(len(order)), np.empty(len(order))
    start[order], end[order] = events.start[rows], events.end[rows]
    first = program.slot_offsets[:-1]
    return np.minimum.reduceat(start, first), np.maximum.reduceat(end, first)


def _transfers(graph: Graph, events: Events, start: Floats, end: Floats, origin: float) -> Floats:
    """(n_messages,) seconds from the end of what makes each message to its arrival, as the step's own rows say.

    A message without a row takes none. What a receiver's start belies, for clocks err, counts until that start.
    """
    program, edges, rows = graph.program, graph.dependencies, graph.messages
    arrived = np.full((2, program.n_stages, program.n_micro_batches, program.n_segments), np.nan)
    # a receive knows better than its send when its message was there
    for kind, back in ((Kind.SEND_F, 0), (Kind.SEND_B, 1), (Kind.RECV_F, 0), (Kind.RECV_B, 1)):
        found = events.kind == kind
        sender = events.stage[found] + {Kind.RECV_F: -1, Kind.RECV_B: 1}.get(kind, 0)
        arrived[back, sender, events.micro_batch[found], events.segment[found]] = events.end[found] - origin
    source = edges.source[rows]
    backward = (edges.message[rows] == BACKWARD_MESSAGE).astype(np.int64)
    leaves = end[graph.source_slot[rows]]
    arrives = arrived[backward, program.stage[source], program.micro_batch[source], program.segment[source]]
    arrives = np.where(np.isnan(arrives), leaves, arrives)
    return np.asarray(np.minimum(arrives, start[program.slot_of_action[edges.target[rows]]]) - leaves)


def _lags(graph: Graph, transfers: Floats) -> Floats:
    """(n_edges,) seconds that pass along each edge."""
    lags = graph.dependencies.lag.copy()
    lags[graph.messages] += transfers
    return lags


def _earliest(graph: Graph, start: Floats, end: Floats, lags: Floats) -> Floats:
    """(n_slots,) when each slot could have begun, with all others where they are."""
    program = graph.program
    earliest = np.zeros(program.n_slots)
    first = program.rank_offsets[:-1][np.diff(program.rank_offsets) > 0]
    earliest[1:] = end[:-1]
    earliest[first] = 0.0
    there = np.where(graph.dependencies.from_start, start[graph.source_slot], end[graph.source_slot]) + lags
    np.maximum.at(earliest, program.slot_of_action[graph.dependencies.target], there)
    return earliest


def _counted(program: Program) -> npt.NDArray[np.bool_]:
    """(n_slots,) whether each slot counts for the makespan, which ends before the optimizer."""
    return np.asarray(program.kind[program.slot_offsets[:-1]] != Kind.U)


def _by_identity(order: Order, by_slot: Floats) -> Floats:
    values = np.zeros(len(order.identity))
    values[order.slot_identity] = by_slot
    return values
