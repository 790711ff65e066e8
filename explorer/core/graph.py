"""A program's dependencies as arrays with an order to visit them in: made once, swept many times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.kernels import kernel
from explorer.core.pairs import is_message, message_pairs
from explorer.core.program import Program
from explorer.core.rules import LOCAL, Dependencies, check_complete, dependencies, neighbourhood
from explorer.errors import CircularWaitError, InputError

Indices = npt.NDArray[np.int64]

_MOST_LINKS = 8  # of a circle that a message spells out


class Sweep(NamedTuple):
    """A graph laid out for visiting: position k is the k-th slot of its order, and all that it needs lies behind it.

    Attributes:
        rank: (n_slots,) int32, by position.
        offsets: (n_slots + 1,) int32, where each position's edges begin.
        edge: (n_edges,) int32, row of `dependencies`, by position of its target.
        source: (n_edges,) int32, position of its source; n_slots more where the source need only have begun.
    """

    rank: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int32]
    edge: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Graph:
    """Slots and what they wait for besides the order of their rank.

    Attributes:
        program: that this was made of.
        dependencies: between actions, sorted by the slot of their target.
        edge_offsets: (n_slots + 1,) int64, where each slot's incoming edges begin in `dependencies`.
        source_slot: (n_edges,) int64, slot of each edge's source.
        order: (n_slots,) int64, the slots so that each comes after all it waits for.
    """

    program: Program
    dependencies: Dependencies
    edge_offsets: Indices
    source_slot: Indices
    order: Indices

    @cached_property
    def sweep(self) -> Sweep:
        """The same in order of visiting, where a sweep is several times as fast: memory is read as it lies."""
        n = len(self.order)
        position = np.empty(n, np.int32)
        position[self.order] = np.arange(n, dtype=np.int32)
        counts = np.diff(self.edge_offsets).take(self.order)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        shift = (self.edge_offsets.take(self.order) - offsets[:-1]).astype(np.int32)
        edge = np.repeat(shift, counts) + np.arange(offsets[-1], dtype=np.int32)
        source = position.take(self.source_slot.take(edge))
        source[self.dependencies.from_start.take(edge)] += n
        return Sweep(self.program.rank_of_slot.take(self.order), offsets, edge, source)

    @cached_property
    def messages(self) -> Indices:
        """(n_messages,) the edges along which something travels to another rank, by sender in order of its slots."""
        rank, edges = self.program.rank_of_action, self.dependencies
        rows = np.flatnonzero((edges.message != LOCAL) & (rank[edges.source] != rank[edges.target]))
        return np.asarray(rows[np.argsort(self.source_slot[rows], kind="stable")])


def graph_of(program: Program) -> Graph:
    """The graph of `program`, checked; kept, so that moving a cost slider re-runs only the sweep.

    Raises:
        InputError: if it is no Program.
        ProgramError: if an action is missing, doubled, misplaced or out of range.
        CircularWaitError: if actions wait for each other in a circle.
    """
    if not isinstance(program, Program):
        raise InputError(
            f"this needs a Program; got {type(program).__name__}; make one with explorer.schedule(…)",
            argument="program",
        )
    return _kept(program)


def build(program: Program) -> Graph:
    """The graph of `program`, made anew."""
    check_complete(program)
    if is_message(program).any():
        message_pairs(program)  # refuses a send without its receive, which would else wait for nothing
    found = dependencies(program)
    slot = program.slot_of_action
    row, edge_offsets = _by_target(slot[found.target], program.n_slots)
    found = found.take(row)
    source_slot = slot[found.source]
    order = np.empty(program.n_slots, np.int64)
    reached = np.empty(program.n_ranks, np.int64)
    done = _visit(program.rank_offsets, program.rank_of_slot, edge_offsets, source_slot, order, reached)
    if done < program.n_slots:
        raise _circle(program, edge_offsets, source_slot, reached)
    return Graph(program, found, edge_offsets, source_slot, order)


_kept = lru_cache(maxsize=16)(build)


def check(program: Program) -> Program:
    """Give `program` back if it is complete and can finish.

    Raises:
        ProgramError: if an action is missing, doubled, misplaced or out of range; it names rank, slot and action
            and draws the neighbourhood.
        CircularWaitError: if actions wait for each other in a circle; it names the chain.
    """
    return graph_of(program).program


@kernel
def _by_target(target: Indices, n_slots: int) -> tuple[Indices, Indices]:
    """Counting sort: the rows in order of their target, and where each target's rows begin."""
    offsets = np.zeros(n_slots + 1, np.int64)
    for t in target:
        offsets[t + 1] += 1
    for k in range(n_slots):
        offsets[k + 1] += offsets[k]
    place = offsets[:-1].copy()
    row = np.empty(len(target), np.int64)
    for i in range(len(target)):
        row[place[target[i]]] = i
        place[target[i]] += 1
    return row, offsets


@kernel
def _visit(
    rank_offsets: Indices,
    rank_of_slot: npt.NDArray[np.int32],
    edge_offsets: Indices,
    source: Indices,
    order: Indices,
    reached: Indices,
) -> int:
    """Let each rank run until it must wait; fill `order` and how far each rank came; count the slots done.

    A waiting rank hangs in the list of the one slot it waits for and is taken up again when that is done.
    """
    n_ranks = len(rank_offsets) - 1
    n_slots = len(rank_of_slot)
    done = np.zeros(n_slots, np.bool_)
    first_waiter = np.full(n_slots, -1, np.int64)
    next_waiter = np.full(n_ranks, -1, np.int64)
    ready = np.empty(n_ranks, np.int64)
    for rank in range(n_ranks):
        ready[rank] = n_ranks - 1 - rank
        reached[rank] = rank_offsets[rank]
    n_ready, n_done = n_ranks, 0
    while n_ready:
        n_ready -= 1
        rank = ready[n_ready]
        while reached[rank] < rank_offsets[rank + 1]:
            slot = reached[rank]
            blocker = -1
            for edge in range(edge_offsets[slot], edge_offsets[slot + 1]):
                if not done[source[edge]]:
                    blocker = source[edge]
                    break
            if blocker >= 0:
                next_waiter[rank] = first_waiter[blocker]
                first_waiter[blocker] = rank
                break
            order[n_done] = slot
            n_done += 1
            done[slot] = True
            reached[rank] += 1
            waiter = first_waiter[slot]
            while waiter >= 0:
                ready[n_ready] = waiter
                n_ready += 1
                waiter = next_waiter[waiter]
    return n_done


def _circle(program: Program, edge_offsets: Indices, source: Indices, reached: Indices) -> CircularWaitError:
    """Follow, from a rank that could not go on, who waits for whom until a rank comes up again."""
    waits_for: dict[int, tuple[int, int]] = {}  # rank → (its slot, the slot it waits for)
    for rank in range(program.n_ranks):
        slot = int(reached[rank])
        if slot < program.rank_offsets[rank + 1]:
            edges = source[edge_offsets[slot] : edge_offsets[slot + 1]]
            blocked = [s for s in edges.tolist() if s >= reached[program.rank_of_slot[s]]]
            waits_for[rank] = slot, blocked[0]
    rank, seen = next(iter(waits_for)), []
    while rank not in seen:
        seen.append(rank)
        rank = int(program.rank_of_slot[waits_for[rank][1]])
    links = [(rank, *waits_for[rank]) for rank in seen[seen.index(rank) :]]
    chain = tuple((r, int(slot - program.rank_offsets[r]), str(program.slot(slot))) for r, slot, _ in links)
    words = [
        f"rank {r} slot {place} {action} waits for {program.slot(blocker)}"
        for (r, place, action), (_, _, blocker) in zip(chain, links[:_MOST_LINKS], strict=False)
    ]
    more = [f"… ({len(chain)} in all)"] if len(chain) > _MOST_LINKS else []
    drawn = "; ".join(f"rank {r}: {neighbourhood(program, r, place)}" for r, place, _ in chain[:_MOST_LINKS])
    return CircularWaitError(
        f"a program must be able to finish; these wait for each other in a circle: {' → '.join(words + more)}; "
        f"{_cure(program, links)} ({drawn})",
        chain=chain,
    )


def _cure(program: Program, links: list[tuple[int, int, int]]) -> str:
    """What would open the circle: on one of its ranks, what is waited for put before what waits there."""
    moves = [(rank, slot, links[k - 1][2]) for k, (rank, slot, _) in enumerate(links)]
    rank, slot, wanted = min(moves, key=lambda move: (move[1] == move[2], _needs(program, move[1], move[2])))
    if slot == wanted and program.slot_offsets[slot + 1] - program.slot_offsets[slot] > 1:
        return f"give the parts of {program.slot(slot)} slots of their own"
    if slot == wanted:
        return "leave out one of the program's further waits"
    return f"on rank {rank}, try {program.slot(wanted)} before {program.slot(slot)}"


def _needs(program: Program, slot: int, wanted: int) -> bool:
    """Whether `wanted` is a later part of a micro-batch that `slot` begins, and so cannot come before it."""
    pair = [(p.stage, p.micro_batch) for p in (program.action(int(program.slot_offsets[k])) for k in (slot, wanted))]
    return pair[0] == pair[1] and program.kind[program.slot_offsets[slot]] < program.kind[program.slot_offsets[wanted]]
