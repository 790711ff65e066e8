"""What an action waits for: the only home of it. Whether all of them are there is `completeness`.

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

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import PER_STAGE_KINDS, Kind, among
from explorer.core.completeness import (
    check_complete as check_complete,  # the rules in one place for who needs both
    neighbourhood as neighbourhood,
)
from explorer.core.program import Program

Indices = npt.NDArray[np.signedinteger[Any]]

LOCAL, FORWARD_MESSAGE, BACKWARD_MESSAGE = 0, 1, 2


class Dependencies(NamedTuple):
    """Which action waits for which, as columns of equal length.

    Attributes:
        source: (n,) int32, index of the action waited for.
        target: (n,) int32, index of the action that waits.
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
    source, target, message, lag, from_start = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Dependencies(
        source.astype(np.int32, copy=False), target.astype(np.int32, copy=False), message, lag, from_start
    )


class _Table:
    """Index of the action of each kind for each (stage, micro-batch, segment); −1 where there is none."""

    def __init__(self, program: Program) -> None:
        self._shape = (program.n_stages, program.n_micro_batches, program.n_segments)
        self._absent = np.full(self._shape, -1, np.int32)
        self._of: dict[int, Indices] = {}
        for kind in np.flatnonzero(np.bincount(program.kind)).tolist():
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
    ends = np.flatnonzero(among(program.kind, Kind.B, Kind.I, Kind.W))
    for index in np.flatnonzero(among(program.kind, *PER_STAGE_KINDS)):
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
