"""The greedy search behind ZB-V: which leg a rank runs next, with weight gradients to fill what would be idle.

A rank takes turns between one input gradient and one forward. Before each, weight gradients fill the time until its
input arrives; one that does not quite fit is put all the same where the gap would make this rank idle longer than
the worst has been. Variants of that rule are tried, and each again with what it learnt of the idle times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel, part

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_NOT_YET = -1.0


# columns of _Line.planned after the six legs, of _Line.ranks, rows of _Line.cost, entries of _Line.totals
_ALL, _DUE = 6, 7
_FREE, _HELD, _IDLE, _KNOWN_IDLE = range(4)
_MESSAGE, _BYTES = 6, 10
_WORST, _KNOWN_WORST, _LIMIT, _FAILED = range(4)


class _Line(NamedTuple):
    """All the ranks as far as they have been planned. Few arrays, since each makes every part slower to compile.

    Attributes:
        cost: (12, n_ranks) seconds of each of six legs, seconds the inputs of four are on the way to the rank, and
            bytes that legs 0 and 1 begin to hold.
        end: (4, n_ranks, n_micro_batches) when it ends; below 0 = not planned yet.
        planned: (n_ranks, 8) how many of each leg, of all, and the leg of the next input gradient.
        legs: (n_ranks, 6 · n_micro_batches) what each rank runs, in order.
        waiting: (n_ranks, 2 · n_micro_batches) legs 4 and 5 in the order of their input gradients.
        ranks: (n_ranks, 4) when each is free again, bytes it holds, seconds it has idled since its first forward,
            and idled in the plan before this one.
        totals: (4,) the most that any has idled, and in the plan before; the limit in bytes; above 0 if nothing fits.
    """

    cost: Floats
    end: Floats
    planned: Indices
    legs: npt.NDArray[np.int8]
    waiting: npt.NDArray[np.int8]
    ranks: Floats
    totals: Floats


def search(
    seconds: Floats, message: Floats, bytes_: Floats, limit: float, n_micro_batches: int
) -> npt.NDArray[np.int8] | None:
    """The legs (n_ranks, 6 · n_micro_batches) of the plan whose worst rank idles least; None if nothing fits.

    Args:
        seconds: (6, n_ranks) each leg takes.
        message: (4, n_ranks) seconds the input of each leg is on its way to the rank.
        bytes_: (2, n_ranks) held for each of legs 0 and 1 until its weight gradient.
        limit: bytes a rank may hold.
        n_micro_batches: in a step.
    """
    n_ranks = seconds.shape[1]
    line = _Line(
        cost=np.concatenate([seconds, message, bytes_]),
        end=np.empty((4, n_ranks, n_micro_batches)),
        planned=np.zeros((n_ranks, 8), np.int64),
        legs=np.zeros((n_ranks, 6 * n_micro_batches), np.int8),
        waiting=np.zeros((n_ranks, 2 * n_micro_batches), np.int8),
        ranks=np.zeros((n_ranks, 4)),
        totals=np.array([0.0, 0.0, limit, 0.0]),
    )
    return _best_of_variants(line)


def _best_of_variants(line: _Line) -> npt.NDArray[np.int8] | None:
    """The legs of the plan in which the worst rank idles least; None if nothing fits."""
    best, least = None, np.inf
    for variant in range(4):
        before = np.inf
        line.ranks[:, _KNOWN_IDLE] = _NOT_YET
        while True:
            _plan(line.legs, line, variant < 2, variant % 2 == 0)
            worst = float(line.totals[_WORST])
            if line.totals[_FAILED]:
                break
            if worst < least:
                best, least = line.legs.copy(), worst
            if least == 0.0:
                return best
            if worst >= before:
                break
            before = worst
            line.ranks[:, _KNOWN_IDLE] = line.ranks[:, _IDLE]
    return best


@kernel
def _plan(legs: npt.NDArray[np.int8], line: _Line, fill_inputs: bool, fill_forwards: bool) -> None:
    """Plan everything anew into `legs`, the line's; whether weight gradients may delay leg 2, and forwards."""
    legs[:] = 0
    line.end[:] = _NOT_YET
    line.planned[:] = 0
    line.ranks[:, _FREE] = 0.0
    line.ranks[:, _HELD] = 0.0
    line.ranks[:, _IDLE] = 0.0
    line.totals[_WORST] = 0.0
    line.totals[_KNOWN_WORST] = line.ranks[:, _KNOWN_IDLE].max()
    line.totals[_FAILED] = 0.0
    n_ranks, n_micro_batches = line.end.shape[1], line.end.shape[2]
    _warm_up(line)
    _level(line)
    for _ in range(2 * n_micro_batches):
        _inputs(line, fill_inputs)
        for rank in range(n_ranks):
            _forward(line, rank, fill_forwards)
        if line.totals[_FAILED] > 0.0:
            return
    for rank in range(n_ranks):
        while _n_waiting(line, rank) > 0:
            _put_weight(line, rank)


@part
def _warm_up(line: _Line) -> None:
    """The first micro-batch there and back; whoever waits for it begins as many others as fit before it returns."""
    n_ranks, n_micro_batches = line.end.shape[1], line.end.shape[2]
    for rank in range(n_ranks):
        _put(line, rank, 0)
    for rank in range(n_ranks - 1, -1, -1):
        back = _arrival(line, rank, 1)
        room = line.totals[_LIMIT] - line.cost[_BYTES, rank] * 2 * (rank + 1)  # the ranks before need theirs as well
        while (
            rank < n_ranks - 1
            and line.ranks[rank, _HELD] <= room
            and line.ranks[rank, _FREE] + line.cost[0, rank] <= back
            and line.planned[rank, 0] < n_micro_batches
        ):
            for before in range(rank + 1):
                _put(line, before, 0)
        _put(line, rank, 1)


@part
def _level(line: _Line) -> None:
    """Forwards until each rank has begun as many as the one before it."""
    n_ranks, n_micro_batches = line.end.shape[1], line.end.shape[2]
    planned, leg = line.planned, 0
    for rank in range(1, n_ranks):
        while line.totals[_FAILED] == 0.0 and (
            planned[rank, 0] + planned[rank, 1] < planned[rank - 1, 0] + planned[rank - 1, 1]
            or planned[rank, 1] <= planned[rank - 1, 1] < n_micro_batches
        ):
            for behind in range(n_ranks - 1, rank - 1, -1):
                if planned[behind, leg] < n_micro_batches:
                    _put(line, behind, leg)
            leg = 1 - leg


@part
def _inputs(line: _Line, fill: bool) -> None:
    """One input gradient on every rank: legs 3 first, on their way up, then legs 2 on their way down."""
    n_ranks = line.end.shape[1]
    for rank in range(n_ranks):
        line.planned[rank, _DUE] = 3 if _returns(line, rank) else 2
    for rank in range(n_ranks - 1, -1, -1):
        if line.planned[rank, _DUE] == 3:
            _fill(line, rank, 3, True)
            _put(line, rank, 3)
    for rank in range(n_ranks):
        if line.planned[rank, _DUE] == 2:
            _fill(line, rank, 2, fill)
            _put(line, rank, 2)


@part
def _returns(line: _Line, rank: int) -> bool:
    """Whether a rank's next input gradient is one on its way back."""
    done = line.planned[rank, 3]
    if done >= line.planned[rank, 2]:
        return False
    last = rank == line.end.shape[1] - 1
    return bool(last or line.planned[rank, 2] >= line.end.shape[2] or line.end[3, rank + 1, done] >= 0.0)


@part
def _forward(line: _Line, rank: int, fill: bool) -> None:
    """The next forward of a rank, if one can be: on its way back where there is one, else a new one."""
    n_ranks, n_micro_batches = line.end.shape[1], line.end.shape[2]
    there, back = line.planned[rank, 0], line.planned[rank, 1]
    if back >= n_micro_batches:
        return
    leg = -1
    if back >= there:
        leg = 0
    elif rank == n_ranks - 1 or line.end[1, rank + 1, back] >= 0.0:
        leg = 1
    elif there < n_micro_batches and (rank == 0 or line.end[0, rank - 1, there] >= 0.0):
        leg = 0
    if leg < 0:
        return
    while line.ranks[rank, _HELD] + line.cost[_BYTES + leg, rank] > line.totals[_LIMIT] and _n_waiting(line, rank) > 0:
        _put_weight(line, rank)
    _fill(line, rank, leg, fill)
    _put(line, rank, leg)


@part
def _fill(line: _Line, rank: int, leg: int, willing: bool) -> None:
    """Weight gradients until the input of `leg` arrives, and one more if the gap left would be a new worst."""
    arrives = _arrival(line, rank, leg)
    if arrives < 0.0:
        return
    while _n_waiting(line, rank) > 0 and arrives >= line.ranks[rank, _FREE] + line.cost[_next_weight(line, rank), rank]:
        _put_weight(line, rank)
    allowed = (
        max(line.totals[_WORST], line.totals[_KNOWN_WORST] - line.ranks[rank, _KNOWN_IDLE]) - line.ranks[rank, _IDLE]
    )
    if willing and _n_waiting(line, rank) > 0 and arrives - line.ranks[rank, _FREE] > allowed:
        _put_weight(line, rank)


@part
def _arrival(line: _Line, rank: int, leg: int) -> float:
    """When the input of a rank's next `leg` arrives from the rank before; below 0 if it comes from no other rank."""
    before = rank - 1 if leg % 2 == 0 else rank + 1
    if before < 0 or before >= line.end.shape[1] or line.planned[rank, leg] >= line.end.shape[2]:
        return _NOT_YET
    end = line.end[leg, before, line.planned[rank, leg]]
    return end + line.cost[_MESSAGE + leg, rank] if end >= 0.0 else _NOT_YET


@part
def _put(line: _Line, rank: int, leg: int) -> None:
    """Plan a rank's next leg 0–3 as early as can be; the plan fails if its input is not there or memory is full."""
    before = rank - 1 if leg % 2 == 0 else rank + 1
    number = line.planned[rank, leg]
    arrives = _arrival(line, rank, leg)
    from_other = 0 <= before < line.end.shape[1]
    ready = number < line.end.shape[2] and (leg == 0 or line.planned[rank, leg - 1] > number)
    if leg < 2 and line.ranks[rank, _HELD] + line.cost[_BYTES + leg, rank] > line.totals[_LIMIT] * (1.0 + 1e-12):
        ready = False
    if not ready or (from_other and arrives < 0.0):
        line.totals[_FAILED] = 1.0
        return
    start = max(line.ranks[rank, _FREE], arrives)
    if line.planned[rank, 0] > 0:
        line.ranks[rank, _IDLE] += start - line.ranks[rank, _FREE]
        line.totals[_WORST] = max(line.totals[_WORST], line.ranks[rank, _IDLE])
    line.ranks[rank, _FREE] = line.end[leg, rank, number] = start + line.cost[leg, rank]
    if leg < 2:
        line.ranks[rank, _HELD] += line.cost[_BYTES + leg, rank]
    else:
        line.waiting[rank, line.planned[rank, 2] + line.planned[rank, 3]] = leg + 2
    _note(line, rank, leg)


@part
def _put_weight(line: _Line, rank: int) -> None:
    """Plan the weight gradient that has waited longest."""
    leg = _next_weight(line, rank)
    line.ranks[rank, _FREE] += line.cost[leg, rank]
    line.ranks[rank, _HELD] -= line.cost[_BYTES + 5 - leg, rank]  # leg 4 ends what leg 1 began, leg 5 what leg 0 began
    _note(line, rank, leg)


@part
def _note(line: _Line, rank: int, leg: int) -> None:
    line.legs[rank, line.planned[rank, _ALL]] = leg
    line.planned[rank, _ALL] += 1
    line.planned[rank, leg] += 1


@part
def _n_waiting(line: _Line, rank: int) -> int:
    planned = line.planned
    return int(planned[rank, 2] + planned[rank, 3] - planned[rank, 4] - planned[rank, 5])


@part
def _next_weight(line: _Line, rank: int) -> int:
    return int(line.waiting[rank, line.planned[rank, 4] + line.planned[rank, 5]])
