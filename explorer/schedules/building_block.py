"""V schedules from a building block: one micro-batch's four passes, repeated every six chunk times, then tightened.

Repetition fixes the memory: the longer a block holds a chunk, the more are held at once. What the repetition leaves
empty before and after the steady part is then closed up without holding more than before.

Source: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv:2405.15362, sections 3 and 4; the steps
    as in sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import kernel, part

Indices = npt.NDArray[np.int64]

PERIOD = 6  # chunk times between two blocks: two each of F, I and W
_EMPTY = -1
_BACK_ON_FIRST = 3  # the leg whose beginning on rank 0 ends the warm-up
_W = 4


def repeat_block(block: Indices, n_micro_batches: int) -> list[npt.NDArray[np.int8]]:
    """The legs each rank runs, in order, if `block` is begun every six chunk times and the result is tightened.

    Args:
        block: (n_ranks, 4) when each rank begins legs 0–3 of the first micro-batch, in chunk times.
        n_micro_batches: in a step.
    """
    n = n_micro_batches
    time = block.T[:, :, None] + PERIOD * np.arange(n)
    grid = np.full((len(block), int(time.max()) + 2 * n + 2), _EMPTY, np.int32)
    _lay(grid, time)
    _fill_weights(grid, n)
    _close_up(grid, time, n)
    _squeeze(grid, time)
    _lay(grid, time)
    _close_up_tail(grid, time, n)
    _fill_weights(grid, n)
    _squeeze(grid, time)
    _lay(grid, time)
    return [_with_weights(row, n) for row in grid]


def _lay(grid: npt.NDArray[np.int32], time: Indices) -> None:
    """Write leg · n + micro-batch into each rank's cell of its time; all other cells are empty."""
    n_legs, n_ranks, n = time.shape
    grid[:] = _EMPTY
    codes = np.broadcast_to(np.arange(n_legs * n, dtype=np.int32).reshape(n_legs, 1, n), time.shape)
    ranks = np.broadcast_to(np.arange(n_ranks)[:, None], time.shape)
    grid[ranks, time] = codes


def _with_weights(row: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.int8]:
    """A rank's legs with weight gradients in its empty cells, those of leg 2 before those of leg 3."""
    legs: npt.NDArray[np.int8] = np.full(len(row) + 2 * n, _EMPTY, np.int8)
    _weights_by_half(row, n, legs)
    return np.asarray(legs[legs != _EMPTY])


@kernel
def _fill_weights(grid: npt.NDArray[np.int32], n: int) -> None:
    """Put each weight gradient into the first empty cell after its input gradient, the oldest first."""
    for rank in range(grid.shape[0]):
        inputs, weights = 0, 0
        for t in range(grid.shape[1]):
            code = grid[rank, t]
            if code >= 2 * n:
                inputs += 1
            elif code == _EMPTY and inputs > weights:
                grid[rank, t] = _W * n + weights
                weights += 1


@kernel
def _weights_by_half(row: npt.NDArray[np.int32], n: int, legs: npt.NDArray[np.int8]) -> None:
    waiting_far, waiting_near = 0, 0
    for t in range(len(legs)):
        code = row[t] if t < len(row) else _EMPTY
        if code != _EMPTY:
            legs[t] = code // n
            waiting_far += code // n == 2
            waiting_near += code // n == 3
        elif waiting_far > 0:
            legs[t] = 4
            waiting_far -= 1
        elif waiting_near > 0:
            legs[t] = 5
            waiting_near -= 1


@kernel
def _squeeze(grid: npt.NDArray[np.int32], time: Indices) -> None:
    """Begin everything as early as its rank's order and its input allow; new times only, `grid` stays."""
    n_ranks, n = time.shape[1], time.shape[2]
    free = np.zeros(n_ranks, np.int64)
    for t in range(grid.shape[1]):
        for rank in range(n_ranks):
            code = grid[rank, t]
            if code == _EMPTY:
                continue
            start = free[rank]
            if code < _W * n:
                start = max(start, _ready(time, code // n, rank, code % n))
                time[code // n, rank, code % n] = start
            free[rank] = start + 1


@part
def _ready(time: Indices, leg: int, rank: int, m: int) -> int:
    """When the input of a leg is there: from the rank before, from the leg before, after the micro-batch before."""
    ready = 0
    before = rank - 1 if leg % 2 == 0 else rank + 1
    if 0 <= before < time.shape[1]:
        ready = max(ready, time[leg, before, m] + 1)
    if leg > 0:
        ready = max(ready, time[leg - 1, rank, m] + 1)
    if m > 0:
        ready = max(ready, time[leg, rank, m - 1] + 1)
    return int(ready)


@kernel
def _close_up(grid: npt.NDArray[np.int32], time: Indices, n: int) -> None:
    """Move what lies before and after the steady part to earlier empty cells, without holding more than the most."""
    n_ranks = grid.shape[0]
    held = np.zeros(grid.shape, np.int64)  # after each cell
    for rank in range(n_ranks):
        now = 0
        for t in range(grid.shape[1]):
            code = grid[rank, t]
            if code >= _W * n:
                now -= 1
            elif code != _EMPTY and code < 2 * n:
                now += 1
            held[rank, t] = now
    most = held.max()
    begin, end = _steady(grid, n)
    inputs, n_seen = np.zeros((n_ranks, 2 * n), np.int64), np.zeros((n_ranks, 2), np.int64)
    for t in range(grid.shape[1]):
        for rank in range(n_ranks):
            code, to = grid[rank, t], t
            if code == _EMPTY:
                continue
            if not begin <= t * n_ranks + rank <= end:
                to = _moved(grid, held, time, most, rank, t, _earliest(time, inputs, n_seen, rank, code))
            _note(inputs, n_seen, rank, code, to, n)


@part
def _steady(grid: npt.NDArray[np.int32], n: int) -> tuple[int, int]:
    """The first and last cell of the steady part, counted through the ranks at each time.

    It begins when the first micro-batch is back on rank 0, and ends when the last one has left for the first time.
    """
    n_ranks, begin = grid.shape[0], -1
    for t in range(grid.shape[1]):
        if begin < 0 and grid[0, t] // n == _BACK_ON_FIRST:
            begin = t * n_ranks
        if begin < 0:
            continue
        for rank in range(n_ranks):
            if grid[rank, t] == n - 1:
                return begin, t * n_ranks + rank
    return begin, grid.size


@part
def _earliest(time: Indices, inputs: Indices, n_seen: Indices, rank: int, code: int) -> int:
    """The first time an action may begin; a weight gradient after its input gradient and the weights before it."""
    n = time.shape[2]
    if code < _W * n:
        return _ready(time, code // n, rank, code % n)
    return int(max(inputs[rank, code - _W * n] + 1, n_seen[rank, 1]))


@part
def _note(inputs: Indices, n_seen: Indices, rank: int, code: int, t: int, n: int) -> None:
    """Keep where a rank's input gradients lie, in order, and when its last weight gradient ends."""
    if code >= _W * n:
        n_seen[rank, 1] = t + 1
    elif code >= 2 * n:
        place = n_seen[rank, 0]
        while place > 0 and inputs[rank, place - 1] > t:
            inputs[rank, place] = inputs[rank, place - 1]
            place -= 1
        inputs[rank, place] = t
        n_seen[rank, 0] += 1


@part
def _moved(grid: npt.NDArray[np.int32], held: Indices, time: Indices, most: int, rank: int, t: int, first: int) -> int:
    """Move the action in a cell to the earliest empty one from `first` on that it may have; where it then is."""
    n = time.shape[2]
    code, to = grid[rank, t], t
    for cell in range(t - 1, first - 1, -1):
        if code < 2 * n and held[rank, cell] >= most:
            break
        if grid[rank, cell] == _EMPTY:
            to = cell
    if to == t:
        return t
    grid[rank, t] = _EMPTY
    grid[rank, to] = code
    if code < _W * n:
        time[code // n, rank, code % n] = to
    if code < 2 * n or code >= _W * n:
        held[rank, to:t] += 1 if code < 2 * n else -1
    return to


@kernel
def _close_up_tail(grid: npt.NDArray[np.int32], time: Indices, n: int) -> None:
    """Move what lies after the steady part to earlier cells; weight gradients are wherever it is empty."""
    n_ranks = grid.shape[0]
    held, waiting = np.zeros(grid.shape, np.int64), np.zeros(grid.shape, np.int64)
    for rank in range(n_ranks):
        _hold(grid, held, waiting, rank, 0, grid.shape[1], n)
    most = held.max()
    _, end = _steady(grid, n)
    for t in range(grid.shape[1]):
        for rank in range(n_ranks):
            if grid[rank, t] != _EMPTY and t * n_ranks + rank > end:
                _try_earlier(grid, held, waiting, time, most, rank, t)


@part
def _try_earlier(
    grid: npt.NDArray[np.int32], held: Indices, waiting: Indices, time: Indices, most: int, rank: int, t: int
) -> None:
    """Move the action in a cell to the first empty one in which the rank holds no more than the most."""
    n = time.shape[2]
    code = grid[rank, t]
    for cell in range(_ready(time, code // n, rank, code % n), t):
        if grid[rank, cell] != _EMPTY:
            continue
        grid[rank, t], grid[rank, cell] = _EMPTY, code
        if _holds_at_most(grid, held, waiting, most, rank, cell, t, n):
            _hold(grid, held, waiting, rank, cell, t, n)
            time[code // n, rank, code % n] = cell
            return
        grid[rank, t], grid[rank, cell] = code, _EMPTY


@part
def _holds_at_most(
    grid: npt.NDArray[np.int32], held: Indices, waiting: Indices, most: int, rank: int, first: int, last: int, n: int
) -> bool:
    """Whether a rank holds no more than `most` though its cells `first` and `last` have changed.

    Once the count behind `last` is what it was, it stays so, and that was no more.
    """
    now = held[rank, first - 1] if first > 0 else 0
    wait = waiting[rank, first - 1] if first > 0 else 0
    for t in range(first, grid.shape[1]):
        now, wait = _counted(grid[rank, t], now, wait, n)
        if now > most:
            return False
        if t >= last and now == held[rank, t] and wait == waiting[rank, t]:
            return True
    return True


@part
def _hold(
    grid: npt.NDArray[np.int32], held: Indices, waiting: Indices, rank: int, first: int, last: int, n: int
) -> None:
    """Count anew, from cell `first` on, chunks held and weight gradients waiting, until behind `last` it is known."""
    now = held[rank, first - 1] if first > 0 else 0
    wait = waiting[rank, first - 1] if first > 0 else 0
    for t in range(first, grid.shape[1]):
        now, wait = _counted(grid[rank, t], now, wait, n)
        if t >= last and now == held[rank, t] and wait == waiting[rank, t]:
            return
        held[rank, t], waiting[rank, t] = now, wait


@part
def _counted(code: int, now: int, wait: int, n: int) -> tuple[int, int]:
    """Chunks held and weight gradients waiting after a cell; an empty one runs a weight gradient."""
    if code == _EMPTY:
        return (now - 1, wait - 1) if wait > 0 else (now, wait)
    return (now + 1, wait) if code < 2 * n else (now, wait + 1)
