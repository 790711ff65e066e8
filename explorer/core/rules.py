"""What an action waits for, and whether a program is complete: the only home of both.

An action of a training step waits for

    F  the same micro-batch's F on the stage before         (and, with a cut sequence, the segment before)
    R  its F
    B  its F (or R), and the same micro-batch's B on the next stage (with a cut sequence, the segment behind)
    I  as B
    W  its I
    G  every backward of its stage, on all ranks that hold a copy of it
    U  its stage's G, or else every backward of its stage on its rank

Where a program holds explicit messages, a SEND stands between the producer and the receiver's RECV, and the RECV
between the SEND and the consumer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import PER_STAGE_KINDS, Action, Kind
from explorer.core.program import Program
from explorer.errors import ProgramError

Indices = npt.NDArray[np.int64]

LOCAL, FORWARD_MESSAGE, BACKWARD_MESSAGE = 0, 1, 2


class Dependencies(NamedTuple):
    """Which action waits for which, as columns of equal length.

    Attributes:
        source: (n,) int64, index of the action waited for.
        target: (n,) int64, index of the action that waits.
        message: (n,) int8, LOCAL, or what travels from source to target: FORWARD_MESSAGE or BACKWARD_MESSAGE.
        lag: (n,) float64, seconds that must pass besides.
        from_start: (n,) bool, whether the source need only have begun (buffers), not ended.
    """

    source: Indices
    target: Indices
    message: npt.NDArray[np.int8]
    lag: npt.NDArray[np.float64]
    from_start: npt.NDArray[np.bool_]

    def take(self, rows: Indices) -> Dependencies:
        """The given rows."""
        source, target, message, lag, from_start = self
        return Dependencies(source[rows], target[rows], message[rows], lag[rows], from_start[rows])


def dependencies(program: Program) -> Dependencies:
    """Everything the actions of a checked `program` wait for, besides the order of their rank."""
    table = _Table(program)
    parts = [
        *_forward(program, table),
        *_backward(program, table),
        *_messages(program, table),
        *_per_stage(program),
        *_extra(program),
        *_buffers(program, table),
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Dependencies(*columns)


def check_complete(program: Program) -> None:
    """Refuse a program that lacks, doubles or misplaces an action; circles are the graph's to find.

    Raises:
        ProgramError: naming rank, slot and action, with the neighbourhood drawn.
    """
    _check_range(program)
    _check_place(program)
    _check_once(program)
    _check_extras(program)


def neighbourhood(program: Program, rank: int, slot: int, *, reach: int = 3) -> str:
    """The slots of `rank` around its `slot`-th, with that one marked: ``… 0F2 [0F3] 0B0 …``."""
    first, last = int(program.rank_offsets[rank]), int(program.rank_offsets[rank + 1])
    here = first + slot
    low, high = max(first, here - reach), min(last, here + reach + 1)
    words = [f"[{program.slot(k)}]" if k == here else str(program.slot(k)) for k in range(low, high)]
    return " ".join((["…"] if low > first else []) + words + (["…"] if high < last else []))


# ── dependencies ────────────────────────────────────────────────────────────────────────────────────────────────


class _Table:
    """Index of the action of each kind for each (stage, micro-batch, segment); −1 where there is none."""

    def __init__(self, program: Program) -> None:
        self._shape = (program.n_stages, program.n_micro_batches, program.n_segments)
        self._absent = np.full(self._shape, -1, np.int64)
        self._of: dict[int, Indices] = {}
        for kind in np.unique(program.kind).tolist():
            if kind not in PER_STAGE_KINDS:
                self._of[kind] = self._fill(program, np.flatnonzero(program.kind == kind))

    def __getitem__(self, kind: Kind) -> Indices:
        return self._of.get(kind, self._absent)

    def first_of(self, *kinds: Kind) -> Indices:
        """Where there are several ways to be ready, the first kind present: RECV_F before F, B or I, …"""
        found = self._absent
        for kind in kinds:
            found = np.where(found >= 0, found, self[kind])
        return found

    def _fill(self, program: Program, indices: Indices) -> Indices:
        table = self._absent.copy()
        table[program.stage[indices], program.micro_batch[indices], program.segment[indices]] = indices
        return table


def _edges(source: Indices, target: Indices, message: int = LOCAL, *, from_start: bool = False) -> Dependencies:
    """Edges between two tables of the same shape, where both hold an action."""
    both = (source >= 0) & (target >= 0)
    n = int(both.sum())
    return Dependencies(
        source[both],
        target[both],
        np.full(n, message, np.int8),
        np.zeros(n),
        np.full(n, from_start),
    )


def _forward(program: Program, table: _Table) -> list[Dependencies]:
    forward, received = table[Kind.F], table[Kind.RECV_F]
    before, arrived = forward[:-1], received[1:]
    direct = np.where(arrived >= 0, -1, before)  # with an explicit receive, that is what the forward waits for
    return [
        _edges(direct, forward[1:], FORWARD_MESSAGE),
        _edges(received, forward),
        _edges(forward[..., :-1], forward[..., 1:]),
        _edges(forward, table[Kind.R]),
    ]


def _backward(program: Program, table: _Table) -> list[Dependencies]:
    backward = table.first_of(Kind.B, Kind.I)
    received = table[Kind.RECV_B]
    direct = np.where(received[:-1] >= 0, -1, backward[1:])
    return [
        _edges(table.first_of(Kind.R, Kind.F), backward),
        _edges(direct, backward[:-1], BACKWARD_MESSAGE),
        _edges(received, backward),
        _edges(backward[..., 1:], backward[..., :-1]),
        _edges(table[Kind.I], table[Kind.W]),
    ]


def _messages(program: Program, table: _Table) -> list[Dependencies]:
    return [
        _edges(table[Kind.F], table[Kind.SEND_F]),
        _edges(table.first_of(Kind.B, Kind.I), table[Kind.SEND_B]),
        _edges(table[Kind.SEND_F][:-1], table[Kind.RECV_F][1:], FORWARD_MESSAGE),
        _edges(table[Kind.SEND_B][1:], table[Kind.RECV_B][:-1], BACKWARD_MESSAGE),
    ]


def _per_stage(program: Program) -> list[Dependencies]:
    """G after all backwards of its stage everywhere; U after its stage's G, or its own rank's backwards."""
    found = []
    ends = np.flatnonzero(np.isin(program.kind, (Kind.B, Kind.I, Kind.W)))
    for index in np.flatnonzero(np.isin(program.kind, PER_STAGE_KINDS)):
        same_stage = ends[program.stage[ends] == program.stage[index]]
        source = same_stage
        if program.kind[index] == Kind.U:
            reductions = np.flatnonzero((program.kind == Kind.G) & (program.stage == program.stage[index]))
            own = same_stage[program.rank_of_action[same_stage] == program.rank_of_action[index]]
            source = reductions if len(reductions) else own
        found.append(_edges(source, np.full(len(source), index)))
    return found


def _extra(program: Program) -> list[Dependencies]:
    if program.waits is None:
        return []
    after, before, lag = program.waits
    n = len(after)
    return [Dependencies(after, before, np.zeros(n, np.int8), np.asarray(lag, float), np.zeros(n, bool))]


def _buffers(program: Program, table: _Table) -> list[Dependencies]:
    """Back-pressure: an item stays on its stage until there is room behind it.

    With room for c items, item m leaves stage s once item m − c has begun on stage s + 1, and only then can the
    stage begin its next item.
    """
    if program.capacities is None:
        return []
    forward = table[Kind.F][..., 0]
    found = []
    for stage, capacity in enumerate(program.capacities.tolist()):
        # the next item of a stage is the one its rank begins after m, whatever its number
        sequence = np.argsort(forward[stage], kind="stable")
        there = np.argsort(forward[stage + 1], kind="stable")
        n = len(sequence) - 1 - capacity
        if n > 0:
            freed, waiting = forward[stage + 1][there[:n]], forward[stage][sequence[capacity + 1 :]]
            found.append(_edges(freed, waiting, from_start=True))
    return found


# ── completeness ────────────────────────────────────────────────────────────────────────────────────────────────


def _check_range(program: Program) -> None:
    per_stage = np.isin(program.kind, PER_STAGE_KINDS)
    outside = (program.stage < 0) | (program.stage >= program.n_stages)
    outside |= ~per_stage & ((program.micro_batch < 0) | (program.micro_batch >= program.n_micro_batches))
    outside |= (program.segment < 0) | (program.segment >= program.n_segments)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        kinds = f"stages 0–{program.n_stages - 1} and micro-batches 0–{program.n_micro_batches - 1}"
        cut = f", segments 0–{program.n_segments - 1}" if program.n_segments > 1 else ""
        problem = f"this program has {kinds}{cut}; got {program.action(index)}, which is outside"
        absent = _absent_on(program, int(program.rank_of_action[index]))
        raise _error(program, index, problem + (f", while {absent} is missing" if absent else ""))


def _check_once(program: Program) -> None:
    counts = _Counts(program)
    if (index := counts.doubled()) is not None:
        raise _error(program, index, f"every action runs exactly once; got {program.action(index)} again")
    if (missing := counts.missing()) is not None:
        action, rank = missing
        slot = program.rank_offsets[rank + 1] - program.rank_offsets[rank]
        raise ProgramError(
            f"every action runs exactly once; {action} is missing from rank {rank}, which has "
            f"{slot} slots; add it there",
            rank=rank,
        )


def _check_place(program: Program) -> None:
    rank = program.rank_of_action
    per_micro_batch = program.micro_batch >= 0
    expected = program.placement.rank_of(program.stage, np.maximum(program.micro_batch, 0))
    wrong = np.where(per_micro_batch, rank != expected, ~program.placement.holds(rank, program.stage))
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        where = (
            f"belongs on rank {expected[index]}"
            if per_micro_batch[index]
            else f"belongs on a rank that holds stage {program.stage[index]}"
        )
        raise _error(program, index, f"the placement says where a stage runs: {program.action(index)} {where}")


def _check_extras(program: Program) -> None:
    if program.waits is not None:
        after, before, lag = program.waits
        if not len(after) == len(before) == len(lag):
            raise ProgramError(
                f"waits are three columns of equal length; got {len(after)}, {len(before)} and {len(lag)}"
            )
        outside = (np.minimum(after, before) < 0) | (np.maximum(after, before) >= program.n_actions)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise ProgramError(
                f"a wait names actions 0–{program.n_actions - 1}; got {after[k]} and {before[k]} in wait {k}"
            )
        if not (np.isfinite(lag) & (np.asarray(lag) >= 0)).all():
            raise ProgramError(f"the lag of a wait is 0 seconds or more; got {np.min(lag):g}")
    if program.capacities is not None:
        wanted, capacities = (program.n_stages - 1,), np.asarray(program.capacities)
        if capacities.shape != wanted or (capacities < 0).any():
            raise ProgramError(
                f"capacities are {wanted[0]} counts of 0 or more, one between each stage and the next; "
                f"got {capacities.tolist()}"
            )


class _Counts:
    """How often each (kind, stage, micro-batch, segment) occurs, and how often it should."""

    def __init__(self, program: Program) -> None:
        self._program = program
        rows = np.flatnonzero(~np.isin(program.kind, PER_STAGE_KINDS))
        self._rows = rows
        shape = (len(Kind), program.n_stages, program.n_micro_batches, program.n_segments)
        columns = (program.kind[rows], program.stage[rows], program.micro_batch[rows], program.segment[rows])
        self._key = np.ravel_multi_index(tuple(column.astype(np.int64) for column in columns), shape)
        self._count = np.bincount(self._key, minlength=int(np.prod(shape))).reshape(shape)

    def doubled(self) -> int | None:
        """Index of the first action that was there before, or of a B beside an I."""
        again = self._count.reshape(-1)[self._key] > 1
        if again.any():
            keys = self._key[again]
            first = np.unique(keys, return_index=True)[1]
            return int(np.delete(self._rows[again], first).min())
        both = (self._count[Kind.B] > 0) & ((self._count[Kind.I] > 0) | (self._count[Kind.W] > 0))
        if both.any():
            stage, micro_batch, segment = np.argwhere(both)[0]
            p = self._program
            same = (p.stage == stage) & (p.micro_batch == micro_batch) & (p.segment == segment)
            return int(np.flatnonzero(same & np.isin(p.kind, (Kind.B, Kind.I, Kind.W)))[-1])
        return None

    def missing(self) -> tuple[Action, int] | None:
        """The first action that should be there and is not, and the rank it belongs on."""
        lacks = {Kind.F: self._count[Kind.F] == 0}
        if self._program.has_backward:
            lacks[Kind.B] = (self._count[Kind.B] + self._count[Kind.I]) == 0
            lacks[Kind.W] = (self._count[Kind.I] > 0) & (self._count[Kind.W] == 0)
            lacks[Kind.I] = (self._count[Kind.W] > 0) & (self._count[Kind.I] == 0)
            lacks[Kind.B] &= ~lacks[Kind.I]
        for kind, lack in lacks.items():
            if lack.any():
                stage, micro_batch, segment = (int(i) for i in np.argwhere(lack)[0])
                rank = int(self._program.placement.rank_of(stage, micro_batch))
                return Action(kind, stage, micro_batch, segment), rank
        return None


def _absent_on(program: Program, rank: int) -> str:
    """The first forward `rank` should have and has not, as text; "" if it has all."""
    stages = np.flatnonzero((program.placement.routes == rank).any(axis=0))
    rows = (program.rank_of_action == rank) & (program.kind == Kind.F)
    for stage in stages.tolist():
        present = program.micro_batch[rows & (program.stage == stage)]
        wanted = np.arange(program.n_micro_batches)
        wanted = wanted[program.placement.rank_of(stage, wanted) == rank]
        lack = np.setdiff1d(wanted, present)
        if len(lack):
            return str(Action(Kind.F, stage, int(lack[0])))
    return ""


def _error(program: Program, index: int, problem: str) -> ProgramError:
    rank = int(program.rank_of_action[index])
    slot = int(program.slot_of_action[index] - program.rank_offsets[rank])
    drawn = neighbourhood(program, rank, slot)
    return ProgramError(f"{problem} (rank {rank}, slot {slot}: {drawn})", rank=rank, slot=slot)
