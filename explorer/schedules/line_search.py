"""The greedy search behind ZB-1P and ZB-2P: one stage a rank, real seconds, and a limit of bytes.

Ranks take turns: one forward each, from the first on, then one input gradient each, from the last on. Weight
gradients fill the time until an input arrives, and make room where a forward would not fit.

Source: Qi et al. 2023, arXiv:2401.10241, section 3.1; rules as in sail-sg/zero-bubble-pipeline-parallelism,
    scheduler/zb.py.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel, part

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_F, _I, _W = range(3)
# rows of _Line.cost after the seconds of F, I, W; columns of _Line.planned after those three, and of _Line.ranks
_FORWARD_MESSAGE, _BACKWARD_MESSAGE, _BYTES = 3, 4, 5
_ALL, _WANTED = 3, 4
_FREE, _HELD, _IDLE, _BEGUN = range(4)
_WORST, _LIMIT, _FAILED = range(3)


class _Line(NamedTuple):
    """All the ranks as far as they have been planned.

    Attributes:
        cost: (8, n_ranks) seconds of F, I, W, seconds an activation and a gradient are on the way to the rank, bytes
            that F, I and W add.
        end: (2, n_ranks, n_micro_batches) seconds at which each F and I ends.
        planned: (n_ranks, 5) how many F, I, W, of all; and forwards wanted next.
        turns: (n_ranks, 3 · n_micro_batches) 0, 1, 2 for F, I, W in order.
        ranks: (n_ranks, 4) when each is free again, bytes held, seconds idled since its first forward, first start.
        totals: (3,) the most that any has idled, the limit in bytes, above 0 if nothing fits.
    """

    cost: Floats
    end: Floats
    planned: Indices
    turns: npt.NDArray[np.int8]
    ranks: Floats
    totals: Floats


def search(cost: Floats, limit: float, n_micro_batches: int) -> npt.NDArray[np.int8] | None:
    """F, I, W as 0, 1, 2, (n_ranks, 3 · n_micro_batches), with the least longest span; None if none fits."""
    n_ranks = cost.shape[1]
    line = _Line(
        cost=cost,
        end=np.empty((2, n_ranks, n_micro_batches)),
        planned=np.zeros((n_ranks, 5), np.int64),
        turns=np.zeros((n_ranks, 3 * n_micro_batches), np.int8),
        ranks=np.zeros((n_ranks, 4)),
        totals=np.array([0.0, limit * (1 + 1e-12), 0.0]),
    )
    best, least = None, np.inf
    for overfull, hesitant, greedy in itertools.product((True, False), repeat=3):
        _plan(line.turns, line, overfull, hesitant, greedy)
        span = float((line.ranks[:, _FREE] - line.ranks[:, _BEGUN]).max())
        if not line.totals[_FAILED] and span < least:
            best, least = line.turns.copy(), span
    return best


@kernel
def _plan(turns: npt.NDArray[np.int8], line: _Line, overfull: bool, hesitant: bool, greedy: bool) -> None:
    """Plan everything anew into `turns`, the line's.

    `overfull`: stop the warm-up before it delays the first input gradient, not after; `hesitant`: skip a forward that
    would delay an input gradient; `greedy`: fill a gap with a weight gradient too long for it though others idle more.
    """
    turns[:] = 0
    line.planned[:] = 0
    line.ranks[:] = 0.0
    line.totals[_WORST] = 0.0
    line.totals[_FAILED] = 0.0
    n_ranks, n = line.end.shape[1], line.end.shape[2]
    _warm_up(line, overfull)
    for _ in range(1, n):
        _forwards(line, hesitant, greedy)
        _inputs(line, greedy)
        if line.totals[_FAILED] > 0.0:
            return
    for rank in range(n_ranks):
        while line.planned[rank, _W] < n:
            _put(line, rank, _W)
        if line.planned[rank, _ALL] < 3 * n:
            line.totals[_FAILED] = 1.0


@part
def _warm_up(line: _Line, overfull: bool) -> None:
    """The first forwards: as many as fit before the first input gradient arrives, fewer on each rank behind."""
    n_ranks, n = line.end.shape[1], line.end.shape[2]
    for rank in range(n_ranks):
        _put(line, rank, _F)
    back = line.ranks[n_ranks - 1, _FREE] + line.cost[_I, n_ranks - 1]
    for rank in range(n_ranks - 2, -1, -1):
        held, until = line.ranks[rank, _HELD], line.ranks[rank, _FREE]
        arrives, seconds = back + line.cost[_BACKWARD_MESSAGE, rank], line.cost[_F, rank]
        more = 0
        while 1 + more < n and held + line.cost[_BYTES, rank] <= line.totals[_LIMIT]:
            if (overfull and until + seconds > arrives) or (not overfull and until >= arrives):
                break
            held, until, more = held + line.cost[_BYTES, rank], until + seconds, more + 1
        line.planned[rank, _WANTED] = more
        back = max(until, arrives) + line.cost[_I, rank]
    for rank in range(1, n_ranks):
        before, most = line.planned[rank - 1, _WANTED], line.planned[rank, _WANTED]
        if 1 + before < n or 1 + most < n:  # not both through with all
            line.planned[rank, _WANTED] = min(most, max(before - 1, 0))
    for rank in range(n_ranks):
        for _ in range(line.planned[rank, _WANTED]):
            _put(line, rank, _F)
    for rank in range(n_ranks - 1, -1, -1):
        _put(line, rank, _I)


@part
def _forwards(line: _Line, hesitant: bool, greedy: bool) -> None:
    """A forward on each rank that wants one, and whose ranks behind want theirs."""
    n_ranks = line.end.shape[1]
    for rank in range(n_ranks):
        line.planned[rank, _WANTED] = _wants_forward(line, rank, hesitant)
    for rank in range(n_ranks - 2, -1, -1):
        line.planned[rank, _WANTED] = min(line.planned[rank, _WANTED], line.planned[rank + 1, _WANTED])
    for rank in range(n_ranks):
        if line.planned[rank, _WANTED] > 0:
            _make_room(line, rank)
            _fill(line, rank, _F, greedy)
            _put(line, rank, _F)


@part
def _inputs(line: _Line, greedy: bool) -> None:
    """An input gradient on each rank; the first rank, once through with forwards, has all its weights done before."""
    n = line.end.shape[2]
    for rank in range(line.end.shape[1] - 1, -1, -1):
        _fill(line, rank, _I, greedy)
        while rank == 0 and line.planned[0, _F] == n and line.planned[0, _W] < line.planned[0, _I]:
            _put(line, 0, _W)
        _put(line, rank, _I)


@part
def _wants_forward(line: _Line, rank: int, hesitant: bool) -> int:
    """1 if a rank should do a forward now, 0 if it is through or had better wait for its next input gradient."""
    planned = line.planned
    if planned[rank, _F] >= line.end.shape[2]:
        return 0
    if not hesitant or rank + 1 >= line.end.shape[1] or planned[rank, _F] < planned[rank + 1, _F] + 2:
        return 1
    free = line.ranks[rank, _FREE]
    due = line.ranks[rank + 1, _FREE] + line.cost[_F, rank + 1] + line.cost[_I, rank + 1]
    due += line.cost[_BACKWARD_MESSAGE, rank]
    if free >= due:
        return 0
    held, seconds, weights = line.ranks[rank, _HELD] + line.cost[_BYTES, rank], line.cost[_F, rank], planned[rank, _W]
    while held > line.totals[_LIMIT] and weights < planned[rank, _I]:
        held, seconds, weights = held + line.cost[_BYTES + _W, rank], seconds + line.cost[_W, rank], weights + 1
    waits_unnoticed = due - free <= line.totals[_WORST] - line.ranks[rank, _IDLE]
    return 0 if free + seconds > due and waits_unnoticed else 1


@part
def _make_room(line: _Line, rank: int) -> None:
    """Weight gradients until a forward fits."""
    while line.ranks[rank, _HELD] + line.cost[_BYTES, rank] > line.totals[_LIMIT]:
        if line.planned[rank, _W] >= line.planned[rank, _I]:
            line.totals[_FAILED] = 1.0
            return
        _put(line, rank, _W)


@part
def _fill(line: _Line, rank: int, what: int, greedy: bool) -> None:
    """Weight gradients until the input of an F or I arrives, and perhaps one more."""
    arrives = _arrival(line, rank, what)
    planned = line.planned
    while planned[rank, _W] < planned[rank, _I] and line.ranks[rank, _FREE] + line.cost[_W, rank] <= arrives:
        _put(line, rank, _W)
    gap = arrives - line.ranks[rank, _FREE]
    worse = greedy or gap > line.totals[_WORST] - line.ranks[rank, _IDLE]
    if planned[rank, _W] < planned[rank, _I] and gap > 0.0 and worse:
        _put(line, rank, _W)


@part
def _arrival(line: _Line, rank: int, what: int) -> float:
    """When the input of a rank's next F or I arrives; 0 if it comes from no other rank."""
    number = line.planned[rank, what]
    if what == _F and rank > 0:
        return float(line.end[_F, rank - 1, number] + line.cost[_FORWARD_MESSAGE, rank])
    if what == _I and rank + 1 < line.end.shape[1]:
        return float(line.end[_I, rank + 1, number] + line.cost[_BACKWARD_MESSAGE, rank])
    return 0.0


@part
def _put(line: _Line, rank: int, what: int) -> None:
    """Plan a rank's next F, I or W as early as it can be."""
    number, free = line.planned[rank, what], line.ranks[rank, _FREE]
    start = free if what == _W else max(free, _arrival(line, rank, what))
    if line.planned[rank, _F] > 0:
        line.ranks[rank, _IDLE] += start - free
        line.totals[_WORST] = max(line.totals[_WORST], line.ranks[rank, _IDLE])
    else:
        line.ranks[rank, _BEGUN] = start
    line.ranks[rank, _FREE] = start + line.cost[what, rank]
    if what != _W:
        line.end[what, rank, number] = line.ranks[rank, _FREE]
    line.ranks[rank, _HELD] += line.cost[_BYTES + what, rank]
    if line.ranks[rank, _HELD] > line.totals[_LIMIT]:
        line.totals[_FAILED] = 1.0
    line.turns[rank, line.planned[rank, _ALL]] = what
    line.planned[rank, _ALL] += 1
    line.planned[rank, what] += 1
