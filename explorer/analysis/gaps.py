"""The idle intervals of a step: where they lie, what ran before and after, and which phase of its rank each is in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.timed import TimedStep
from explorer.core import Kind, kernel
from explorer.core.action import among

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FILLING, STEADY, DRAINING = 0, 1, 2
_ULPS = 16  # units in the last place of a clock, within which two of its readings are one


class Gaps(NamedTuple):
    """The intervals of a step in which a rank does not compute, by rank and time.

    Attributes:
        rank: (n,) int64.
        start: (n,) float64, seconds.
        end: (n,) float64, seconds.
        before: (n,) int64, node that ended last before it; −1 = none.
        after: (n,) int64, node that ends it by starting; −1 = none.
        phase: (n,) int8: FILLING until the rank's first backward has started, DRAINING once its last forward has
            ended, STEADY between.
        known: (n,) bool, whether the nodes on both sides are of the program.
    """

    rank: Ints
    start: Floats
    end: Floats
    before: Ints
    after: Ints
    phase: npt.NDArray[np.int8]
    known: Flags

    @property
    def seconds(self) -> Floats:
        """(n,) how long each is."""
        return np.asarray(self.end - self.start)


def gaps_of(step: TimedStep) -> Gaps:
    """The idle intervals of all ranks, from the step's first start to its last end."""
    events, rows, n_ranks = step.events, step.rows, step.network.program.n_ranks
    found = np.empty((len(rows) + n_ranks, 5))
    n = _find(events.rank[rows], events.start[rows], events.end[rows], n_ranks, step.begin, step.finish, found)
    rank, start, end, before, after = found[:n].T
    # readings that only rounding keeps apart are one instant
    long = end - start > _ULPS * np.finfo(float).eps * max(abs(step.begin), abs(step.finish))
    sides = [column[long].astype(np.int64) for column in (before, after)]
    node_before, node_after = (np.where(side >= 0, step.node[side], -1) for side in sides)
    known = ((sides[0] < 0) | (node_before >= 0)) & ((sides[1] < 0) | (node_after >= 0))
    # parts of one slot that were timed apart have nothing between them that the program knows of
    known &= (node_before != node_after) | (node_after < 0)
    of_rank = rank[long].astype(np.int64)
    phase = _phases(step, of_rank, start[long], end[long])
    return Gaps(of_rank, start[long], end[long], node_before, node_after, phase, known)


@kernel
def _find(
    rank: npt.NDArray[np.int32], start: Floats, end: Floats, n_ranks: int, begin: float, finish: float, found: Floats
) -> int:
    """Fill `found` with rank, start, end, row before and row after of each gap, and count them; rows by rank, start."""
    n, i = 0, 0
    for r in range(n_ranks):
        until, before = begin, -1
        while i < len(rank) and rank[i] == r:
            if start[i] > until:
                found[n, 0], found[n, 1], found[n, 2], found[n, 3], found[n, 4] = r, until, start[i], before, i
                n += 1
            if end[i] >= until:
                until, before = end[i], i
            i += 1
        if finish > until:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3], found[n, 4] = r, until, finish, before, -1
            n += 1
    return n


def _phases(step: TimedStep, rank: Ints, start: Floats, end: Floats) -> npt.NDArray[np.int8]:
    events, rows, n_ranks = step.events, step.rows, step.network.program.n_ranks
    kind, of = events.kind[rows], events.rank[rows]
    turned, last_forward = np.full(n_ranks, np.inf), np.full(n_ranks, -np.inf)
    forward = kind == Kind.F
    # a rank that runs nothing backward has filled once it has begun
    full = among(kind, Kind.B, Kind.I) if step.network.program.has_backward else forward
    np.minimum.at(turned, of[full], events.start[rows[full]])
    np.maximum.at(last_forward, of[forward], events.end[rows[forward]])
    drained = start >= last_forward[rank]
    return np.where(end <= turned[rank], FILLING, np.where(drained, DRAINING, STEADY)).astype(np.int8)
