"""The loops over nodes and what they wait for: forward in time, backward, and along chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@kernel
def forward(offsets: Ints, place: Ints, lag: Floats, seconds: Floats, delay: Floats, times: Floats) -> None:
    """Fill `times`, (2 · n_nodes,), with ends and then starts: as early as what each node waits for allows.

    `place` is where in `times` each edge's source is read; a node starts `delay` after the last arrival.
    """
    n = len(seconds)
    for k in range(n):
        time = 0.0
        for e in range(offsets[k], offsets[k + 1]):
            time = max(time, times[place[e]] + lag[e])  # no branch: which is later cannot be guessed
        times[n + k] = time + delay[k]
        times[k] = times[n + k] + seconds[k]


@kernel
def backward(
    offsets: Ints, source: Ints, early: Flags, lag: Floats, seconds: Floats, delay: Floats, latest: Floats
) -> None:
    """Lower `latest`, (n_nodes,), the ends that may not be passed, to what lets every later node keep its own."""
    for k in range(len(seconds) - 1, -1, -1):
        start = latest[k] - seconds[k] - delay[k]
        for e in range(offsets[k], offsets[k + 1]):
            s = source[e]
            bound = start - lag[e] + (seconds[s] if early[e] else 0.0)
            if bound < latest[s]:
                latest[s] = bound


@kernel
def bind(
    offsets: Ints,
    source: Ints,
    early: Flags,
    limit: Flags,
    lag: Floats,
    begin: float,
    start: Floats,
    end: Floats,
    edge: Ints,
    free_edge: Ints,
    held: Floats,
    delay: Floats,
) -> None:
    """Find what each node waited for last.

    Fills `edge` with the edge whose arrival was the last, `free_edge` with the last of those that are no limit, `held`
    with the seconds by which limits came later than those, and `delay` with the seconds from the last arrival to the
    start. A node that waits for nothing has edge −1 and could have started at `begin`.
    """
    for k in range(len(start)):
        last, free, edge[k], free_edge[k] = begin, begin, -1, -1
        for e in range(offsets[k], offsets[k + 1]):
            arrival = (start[source[e]] if early[e] else end[source[e]]) + lag[e]
            # of equals the later edge is taken: the rank's own order comes first in the table
            if arrival >= last:
                last, edge[k] = arrival, e
            if arrival >= free and not limit[e]:
                free, free_edge[k] = arrival, e
        held[k] = last - free
        delay[k] = start[k] - last


class Shares(NamedTuple):
    """What the seconds until a node's start consist of, in the columns of `accounts`, before those that count."""

    latency: int = 0
    bandwidth: int = 1
    queue: int = 2
    memory: int = 3
    host: int = 4
    hiccup: int = 5
    straggler: int = 6
    nominal: int = 7


COLUMNS = Shares()
_COUNTS = len(COLUMNS)  # first of the columns that count the nodes of each signature


@kernel
def accumulate(  # noqa: C901  one loop: parts of it would be called for every node
    source: Ints,
    order_edge: Flags,
    message: Ints,
    free_edge: Ints,
    held: Floats,
    delay: Floats,
    carries: Ints,
    ends_message: Flags,
    signature: Ints,
    of_message: Floats,
    of_node: Floats,
    accounts: Floats,
) -> None:
    """Fill `accounts`, (n_nodes, n_columns): what the seconds from the beginning to each start consist of.

    The chain of what was waited for last is followed, limits left out; `of_message` is (n_messages, 3) latency,
    bandwidth and queue, `of_node` (n_nodes, 3) hiccup, straggler and nominal seconds.
    """
    for k in range(len(free_edge)):
        e = free_edge[k]
        if e >= 0:
            s = source[e]
            for column in range(accounts.shape[1]):
                accounts[k, column] = accounts[s, column]
            for column in range(3):
                accounts[k, 5 + column] += of_node[s, column]
                if carries[s] >= 0:
                    accounts[k, column] += of_message[carries[s], column]
                if message[e] >= 0:
                    accounts[k, column] += of_message[message[e], column]
            if signature[s] >= 0:
                accounts[k, 8 + signature[s]] += 1.0
            if order_edge[e] and ends_message[s] and free_edge[s] >= 0:
                # a rank that stands at a message which this node does not need is held up by it
                way = carries[source[free_edge[s]]]
                if way >= 0:
                    for column in range(2):
                        accounts[k, 2] += of_message[way, column]
                        accounts[k, column] -= of_message[way, column]
        accounts[k, 3] += held[k]
        accounts[k, 4] += delay[k]
