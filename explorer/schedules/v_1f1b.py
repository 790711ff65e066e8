"""1F1B-V: two thirds of 1F1B's activation memory with whole backwards, on a V of stages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Program, kernel, part
from explorer.schedules.legs import program_of_legs
from explorer.schedules.recipe import check_counts, two_stages_a_rank

Indices = npt.NDArray[np.int64]

_PERIOD = 6
_EMPTY = -1
_LEGS = 6  # as in legs.py; here 4 and 5 are the second halves of the backwards 2 and 3


def v_1f1b(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """A building block of whole backwards, twice as long as forwards: less memory than 1F1B without splitting them.

        block on 2 ranks, one chunk time a column; begun again every six
        rank 0  0F .  .  3F 3B -  .  .  .  .  .  .  .  0B -
        rank 1  .  1F 2F .  .  .  .  .  .  2B -  1B -  .  .

    The block is repeated, then closed up without holding more. For large P a rank holds about 2/3 of what 1F1B's first
    rank holds. Backwards are not split, so stages run as in any other schedule.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 2.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv:2405.15362, appendix on 1F1B-V; steps
        as in sail-sg/zero-bubble-pipeline-parallelism, scheduler/v1f1b.py.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    two_stages_a_rank("v_1f1b", n_chunks)
    n = n_micro_batches
    time = _block(n_ranks)[:, :, None] + _PERIOD * np.arange(n)
    grid = np.full((n_ranks, int(time.max()) + 2), _EMPTY, np.int32)
    codes = np.broadcast_to(np.arange(_LEGS * n, dtype=np.int32).reshape(_LEGS, 1, n), time.shape)
    grid[np.broadcast_to(np.arange(n_ranks)[:, None], time.shape), time] = codes
    _close_up(grid, time)
    legs = [(row[(row >= 0) & (row < 4 * n)] // n).astype(np.int8) for row in grid]
    return program_of_legs("v_1f1b", legs, n, split=False)


def _block(n_ranks: int) -> Indices:
    """(6, n_ranks) when each rank begins each leg of the first micro-batch.

    Backwards follow one another, two cells each; after every third three cells are left, so that the repeated block
    does not meet itself.
    """
    there = np.arange(n_ranks)
    begin = 2 * n_ranks + (3 if n_ranks % 3 == 0 else 0)
    before = -(n_ranks + 2) % 3  # backwards that count towards the first three
    number = np.arange(2 * n_ranks)
    backward = begin + 2 * number + 3 * ((number + before) // 3)
    first, second = backward[:n_ranks], backward[n_ranks:][::-1]
    return np.stack([there, 2 * n_ranks - 1 - there, first, second, first + 1, second + 1])


@kernel
def _close_up(grid: npt.NDArray[np.int32], time: Indices) -> None:
    """Move every action to an earlier empty cell, forwards only as far as a rank holds no more than the most."""
    n = time.shape[2]
    held = np.zeros(grid.shape, np.int64)  # after each cell
    for rank in range(grid.shape[0]):
        now = 0
        for t in range(grid.shape[1]):
            code = grid[rank, t]
            if code >= 4 * n:
                now -= 1
            elif code != _EMPTY and code < 2 * n:
                now += 1
            held[rank, t] = now
    most = held.max()
    for t in range(grid.shape[1]):
        for rank in range(grid.shape[0]):
            if grid[rank, t] != _EMPTY:
                _move(grid, held, time, most, rank, t)


@part
def _move(grid: npt.NDArray[np.int32], held: Indices, time: Indices, most: int, rank: int, t: int) -> None:
    """Move the action in a cell to the earliest one it may have."""
    n = time.shape[2]
    code = grid[rank, t]
    leg, m = code // n, code % n
    to = _ready(time, leg, rank, m)
    if leg < 2:
        first = t
        while first > to and held[rank, first - 1] < most:
            first -= 1
        to = first
    whole = leg == 2 or leg == 3  # a backward needs the cell behind as well
    while to < t and (grid[rank, to] != _EMPTY or (whole and grid[rank, to + 1] != _EMPTY)):
        to += 1
    if to >= t:
        return
    grid[rank, t], grid[rank, to] = _EMPTY, code
    time[leg, rank, m] = to
    if not whole:
        held[rank, to:t] += 1 if leg < 2 else -1


@part
def _ready(time: Indices, leg: int, rank: int, m: int) -> int:
    """The first cell after what a leg waits for."""
    ready = time[leg, rank, m - 1] + 1 if m > 0 else 0
    if leg >= 4:
        return int(max(ready, time[leg - 2, rank, m] + 1))
    before = rank - 1 if leg % 2 == 0 else rank + 1
    ends = leg if leg < 2 else leg + 2  # a backward's input is there after its second half
    if 0 <= before < time.shape[1]:
        return int(max(ready, time[ends, before, m] + 1))
    if leg > 0:
        turn = 1 if leg == 2 else ends - 1  # at the ends of the V the leg before is on the same rank
        return int(max(ready, time[turn, rank, m] + 1))
    return int(ready)
