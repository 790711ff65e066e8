"""The event-by-event engine in loops that are compiled: for large plans whose messages meet on shared links.

It does what `engine` and `network` do, which it is held against, with arrays in the place of objects.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel, part
from explorer.simulate.channels import Channels, advance, channels_of, divide, first_end, send, take_moved
from explorer.simulate.engine import run_events
from explorer.simulate.layout import Floats
from explorer.simulate.plan import Indices, Loads, Plan, Times

LARGE = 2048  # steps; below, Python is quicker with objects, and not slow enough to wait for a compiler
# what an event is, above the number of its step; at the same time the smaller comes first
_SHIFT = 40
_START, _END, _MOVED, _SEND = 0, 1 << _SHIFT, 2 << _SHIFT, 3 << _SHIFT
_NUMBER = (1 << _SHIFT) - 1


class _Steps(NamedTuple):
    """Steps and who waits for each, the order of their lines included.

    Attributes:
        seconds: (n_steps,) how long each takes, at least.
        offsets: (n_steps + 1,) where the edges that leave each begin.
        target: (n_edges,) the step that waits.
        lag: (n_edges,) seconds.
        early: (n_edges,) whether it waits for the beginning only.
        speaks_early: (n_steps,) whether any waits for the beginning of each only.
        missing: (n_steps,) how many edges are still to come.
        load_offsets: (n_steps + 1,) where each step's messages begin.
        moving: (n_steps,) how many messages of each have not moved yet.
        start: (n_steps,) seconds; until a step begins, those before which it cannot.
        end: (n_steps,) seconds.
    """

    seconds: Floats
    offsets: Indices
    target: Indices
    lag: Floats
    early: npt.NDArray[np.bool_]
    speaks_early: npt.NDArray[np.bool_]
    missing: Indices
    load_offsets: Indices
    moving: Indices
    start: Floats
    end: Floats


def run_loaded(plan: Plan, loads: Loads) -> Times:
    """The times of `plan` with these loads, by the quicker way; the times are the same."""
    if len(plan.seconds) < LARGE:
        return run_events(plan._replace(loads=loads))
    return run_compiled(plan, loads)


def run_compiled(plan: Plan, loads: Loads) -> Times:
    """As `run_events` of `plan` with these loads."""
    order = np.argsort(loads.step, kind="stable")
    flows, step = loads.flows.take(order), loads.step[order]
    steps, channels = _steps(plan, step), channels_of(flows, step)
    _run(steps.seconds, steps, channels, flows.sharing == "fair")
    moves = steps.start.copy()
    moves[step] = np.inf
    np.minimum.at(moves, step, channels.begun)
    return Times(steps.start, steps.end, moves)


def _steps(plan: Plan, loaded: Indices) -> _Steps:
    n = len(plan.seconds)
    line = np.repeat(np.arange(len(plan.line_offsets) - 1), np.diff(plan.line_offsets))
    before = np.flatnonzero(line[1:] == line[:-1])
    source = np.concatenate([plan.source, before])
    target = np.concatenate([np.repeat(np.arange(n), np.diff(plan.edge_offsets)), before + 1])
    order = np.argsort(source, kind="stable")
    return _Steps(
        seconds=np.asarray(plan.seconds, np.float64),
        offsets=np.searchsorted(source[order], np.arange(n + 1)),
        target=target[order],
        lag=np.concatenate([plan.lag, np.zeros(len(before))])[order],
        early=np.concatenate([plan.from_start, np.zeros(len(before), np.bool_)])[order],
        speaks_early=np.bincount(plan.source[plan.from_start], minlength=n) > 0,
        missing=np.bincount(target, minlength=n),
        load_offsets=np.searchsorted(loaded, np.arange(n + 1)),
        moving=np.bincount(loaded, minlength=n),
        start=np.zeros(n),
        end=np.zeros(n),
    )


@part
def _begin(heap: list[tuple[float, int]], step: int, steps: _Steps) -> None:
    """All that `step` waits for is there: its start is known, and its end if it has no messages."""
    start = steps.start[step]
    steps.end[step] = start + steps.seconds[step]
    if steps.speaks_early[step]:
        heappush(heap, (start, _START + step))
    if steps.moving[step]:
        heappush(heap, (start, _SEND + step))
    else:
        heappush(heap, (steps.end[step], _END + step))


@part
def _tell(heap: list[tuple[float, int]], step: int, now: float, early: bool, steps: _Steps) -> None:
    """Tell those that wait for the beginning, or the end, of `step`."""
    for edge in range(steps.offsets[step], steps.offsets[step + 1]):
        if steps.early[edge] == early:
            target = steps.target[edge]
            steps.start[target] = max(steps.start[target], now + steps.lag[edge])
            steps.missing[target] -= 1
            if steps.missing[target] == 0:
                _begin(heap, target, steps)


@part
def _arrive(heap: list[tuple[float, int]], now: float, fair: bool, steps: _Steps, channels: Channels) -> None:
    """Take off what has moved; a step ends when the last of its messages has arrived."""
    n_moved = take_moved(channels, now, fair)
    for k in range(n_moved):
        flow = channels.moved[k]
        step = channels.step[flow]
        steps.end[step] = max(steps.end[step], now + channels.latency[flow])
        steps.moving[step] -= 1
        if steps.moving[step] == 0:
            heappush(heap, (steps.end[step], _END + step))


@part
def _change(heap: list[tuple[float, int]], now: float, code: int, fair: bool, steps: _Steps, net: Channels) -> None:
    """Send the messages of a step, or take off what has moved, and look ahead."""
    number = code & _NUMBER
    if code < _SEND and number != net.changes[0]:  # others came or went since this was foreseen
        return
    if fair:
        advance(net, now)
    if code < _SEND:
        _arrive(heap, now, fair, steps, net)
    else:
        for flow in range(steps.load_offsets[number], steps.load_offsets[number + 1]):
            send(net, flow, now, fair)
    if fair:
        divide(net)
    net.changes[0] += 1
    if net.n_under_way[0]:
        heappush(heap, (first_end(net, now, fair), _MOVED + net.changes[0]))


@kernel
def _run(seconds: Floats, steps: _Steps, channels: Channels, fair: bool) -> None:
    """Fill in starts and ends; `seconds` only say how large it all is."""
    heap: list[tuple[float, int]] = [(0.0, 0)]
    heappop(heap)
    for step in range(len(seconds)):
        if steps.missing[step] == 0:
            _begin(heap, step, steps)
    while len(heap) > 0:
        now, code = heappop(heap)
        if code < _MOVED:
            _tell(heap, code & _NUMBER, now, code < _END, steps)
        else:
            _change(heap, now, code, fair, steps, channels)
