"""Messages under way on shared links, as arrays: what `network` is to the engine, for its compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from explorer.core import part
from explorer.simulate.flows import Floats, Flows, Indices

_ROUNDING = 1e-12  # as in `network`


class Channels(NamedTuple):
    """Links and their messages.

    Attributes:
        seconds: (n_flows,) in which each moves alone.
        latency: (n_flows,) seconds behind them.
        step: (n_flows,) the step of each.
        ways: (n_flows, n_links_on_the_way) the links of each, numbered from 0 without gaps, each once; −1 = none.
        left: (n_flows,) fair: seconds each still has to move alone; queue: seconds at which it will have moved.
        share: (n_flows,) fair: the part of its links it has; 0 while it is being found.
        begun: (n_flows,) seconds at which each began to move; −1 before.
        under_way: (n_flows,) the messages that move, as many of its first entries as `n_under_way` says.
        moved: (n_flows,) the messages that have just moved, in its first entries.
        n_under_way: (1,) how many move.
        seen: (1,) seconds at which they were last looked at.
        changes: (1,) how often messages came or went.
        room: (n_links,) what each link still has to give.
        users: (n_links,) to how many messages.
        queue: (n_entries,) the messages of each link in the order in which they were sent.
        head: (n_links,) the place in `queue` of the message that moves on each link.
        tail: (n_links,) the place in `queue` of the next message that is sent.
    """

    seconds: Floats
    latency: Floats
    step: Indices
    ways: Indices
    left: Floats
    share: Floats
    begun: Floats
    under_way: Indices
    moved: Indices
    n_under_way: Indices
    seen: Floats
    changes: Indices
    room: Floats
    users: Indices
    queue: Indices
    head: Indices
    tail: Indices


def channels_of(flows: Flows, step: Indices) -> Channels:
    """The links of `flows` with nothing on them yet."""
    n = len(flows.row)
    used = np.unique(flows.links[flows.links >= 0])
    ways = np.where(flows.links >= 0, np.searchsorted(used, flows.links), -1)
    for place in range(1, ways.shape[1]):
        again = (ways[:, :place] == ways[:, place, None]).any(axis=1)
        ways[again, place] = -1
    begins = np.concatenate([[0], np.cumsum(np.bincount(ways[ways >= 0], minlength=len(used)))])
    return Channels(
        seconds=flows.seconds.copy(),
        latency=flows.latency.copy(),
        step=step,
        ways=ways,
        left=np.zeros(n),
        share=np.zeros(n),
        begun=np.full(n, -1.0),
        under_way=np.zeros(n, np.int64),
        moved=np.zeros(n, np.int64),
        n_under_way=np.zeros(1, np.int64),
        seen=np.zeros(1),
        changes=np.zeros(1, np.int64),
        room=np.zeros(len(used)),
        users=np.zeros(len(used), np.int64),
        queue=np.zeros(begins[-1], np.int64),
        head=begins[:-1].copy(),
        tail=begins[:-1].copy(),
    )


@part
def send(channels: Channels, flow: int, now: float, fair: bool) -> None:
    """Put a message on its way."""
    if fair:
        channels.begun[flow] = now
        channels.left[flow] = channels.seconds[flow]
        channels.under_way[channels.n_under_way[0]] = flow
        channels.n_under_way[0] += 1
        return
    for link in channels.ways[flow]:
        if link >= 0:
            channels.queue[channels.tail[link]] = flow
            channels.tail[link] += 1
    _begin_if_first(channels, flow, now)


@part
def _begin_if_first(channels: Channels, flow: int, now: float) -> None:
    first = channels.begun[flow] < 0
    for link in channels.ways[flow]:
        first = first and (link < 0 or channels.queue[channels.head[link]] == flow)
    if first:
        channels.begun[flow] = now
        channels.left[flow] = now + channels.seconds[flow]
        channels.under_way[channels.n_under_way[0]] = flow
        channels.n_under_way[0] += 1


@part
def first_end(channels: Channels, now: float, fair: bool) -> float:
    """Seconds at which the next message has moved."""
    end = np.inf
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        end = min(end, now + channels.left[flow] / channels.share[flow] if fair else channels.left[flow])
    return end


@part
def _first(channels: Channels) -> int:
    """The message that has moved next, all being as fast as they are."""
    first, least = -1, np.inf
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        lacks = channels.left[flow] / channels.share[flow]
        if lacks < least:
            first, least = flow, lacks
    return first


@part
def advance(channels: Channels, now: float) -> None:
    """Let messages move until now, each at its part."""
    elapsed = now - channels.seen[0]
    channels.seen[0] = now
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        channels.left[flow] = max(channels.left[flow] - channels.share[flow] * elapsed, 0.0)


@part
def take_moved(channels: Channels, now: float, fair: bool) -> int:
    """Move to `moved` the messages that have moved, and let those begin that they held up; how many they are."""
    first = _first(channels) if fair else -1
    n_moved, kept = 0, 0
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        until = _ROUNDING * channels.seconds[flow] if fair else now
        if flow == first or channels.left[flow] <= until:
            channels.moved[n_moved] = flow
            n_moved += 1
        else:
            channels.under_way[kept] = flow
            kept += 1
    channels.n_under_way[0] = kept
    if not fair:
        _free(channels, n_moved, now)
    return n_moved


@part
def _free(channels: Channels, n_moved: int, now: float) -> None:
    for k in range(n_moved):
        for link in channels.ways[channels.moved[k]]:
            if link >= 0:
                channels.head[link] += 1
    for k in range(n_moved):
        for link in channels.ways[channels.moved[k]]:
            if link >= 0 and channels.head[link] < channels.tail[link]:
                _begin_if_first(channels, channels.queue[channels.head[link]], now)


@part
def divide(channels: Channels) -> None:
    """Give the messages under way their max-min fair parts: the tightest link first, and so on with what is left."""
    unset = channels.n_under_way[0]
    _count_users(channels)
    while unset > 0:
        tightest = _tightest(channels)
        part_of_each = channels.room[tightest] / channels.users[tightest]
        for k in range(channels.n_under_way[0]):
            flow = channels.under_way[k]
            if channels.share[flow] == 0.0 and _passes(channels, flow, tightest):
                _take(channels, flow, part_of_each)
                unset -= 1


@part
def _count_users(channels: Channels) -> None:
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        channels.share[flow] = 0.0
        for link in channels.ways[flow]:
            if link >= 0:
                channels.room[link], channels.users[link] = 1.0, 0
    for k in range(channels.n_under_way[0]):
        for link in channels.ways[channels.under_way[k]]:
            if link >= 0:
                channels.users[link] += 1


@part
def _take(channels: Channels, flow: int, share: float) -> None:
    channels.share[flow] = share
    for link in channels.ways[flow]:
        if link >= 0:
            channels.room[link] -= share
            channels.users[link] -= 1


@part
def _tightest(channels: Channels) -> int:
    """The link with the smallest part for each message that has none yet; of several, the lowest number."""
    least, tightest = np.inf, -1
    for k in range(channels.n_under_way[0]):
        flow = channels.under_way[k]
        if channels.share[flow] == 0.0:
            for link in channels.ways[flow]:
                if link >= 0:
                    each = channels.room[link] / channels.users[link]
                    if each < least or (each == least and link < tightest):
                        least, tightest = each, link
    return tightest


@part
def _passes(channels: Channels, flow: int, link: int) -> bool:
    passes = False
    for one in channels.ways[flow]:
        passes = passes or one == link
    return passes
