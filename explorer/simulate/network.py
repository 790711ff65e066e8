"""Messages under way on shared links, as `explorer.core.links` defines it: with each event, how fast each moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Protocol

import numpy as np

from explorer.simulate.flows import Floats, Flows

Way = tuple[int, ...]
_ROUNDING = 1e-12  # of a message's seconds: so little is left of one that ends together with another


class Network(Protocol):
    """Links with messages on them.

    Attributes:
        begun: (n_flows,) float64, seconds at which each began to move.
    """

    begun: Floats

    def send(self, flow: int, now: float) -> None:
        """Put a message on its way."""

    def next_end(self) -> float:
        """Seconds at which the next message has moved, if no other is sent before; ∞ if none is under way."""

    def ended(self, now: float) -> list[int]:
        """Take off the messages that have moved, `now` being their end."""


def network_of(flows: Flows) -> Network:
    """The links that `flows` pass, with nothing on them yet."""
    return FairLinks(flows) if flows.sharing == "fair" else QueuedLinks(flows)


class FairLinks:
    """Messages that share links max-min fairly."""

    def __init__(self, flows: Flows) -> None:
        self._seconds = flows.seconds.tolist()
        self._ways = _ways(flows)
        self._left: dict[int, float] = {}  # seconds that each still had to move at full bandwidth when last seen
        self._share: dict[int, float] = {}
        self._seen = 0.0
        self.begun = np.full(len(flows.row), np.nan)

    def send(self, flow: int, now: float) -> None:
        """Let it move beside those that are there."""
        self._move(now)
        self._left[flow] = self._seconds[flow]
        self.begun[flow] = now
        self._divide()

    def next_end(self) -> float:
        """When the first of them has moved, if all stay as fast as they are."""
        return min((self._seen + left / self._share[flow] for flow, left in self._left.items()), default=inf)

    def ended(self, now: float) -> list[int]:
        """Take off the first, and those that end with it; the others are faster from now on."""
        first = min(self._left, key=lambda flow: self._left[flow] / self._share[flow])
        self._move(now)
        done = [f for f, left in self._left.items() if f == first or left <= _ROUNDING * self._seconds[f]]
        for flow in done:
            del self._left[flow]
        self._divide()
        return done

    def _move(self, now: float) -> None:
        for flow, share in self._share.items():
            self._left[flow] = max(self._left[flow] - share * (now - self._seen), 0.0)
        self._seen = now

    def _divide(self) -> None:
        self._share = fair_shares({flow: self._ways[flow] for flow in self._left})


def fair_shares(way_of: Mapping[int, Way]) -> dict[int, float]:
    """Message → its max-min fair share of the links of its way, each of which has 1 to give.

    Example:
        >>> fair_shares({0: (0,), 1: (0,), 2: (0, 1), 3: (1,)})[3]  # link 1 has what the third of link 0 leaves
        0.6666666666666667
    """
    users: dict[int, set[int]] = {}
    for flow, way in way_of.items():
        for link in way:
            users.setdefault(link, set()).add(flow)
    room, shares = dict.fromkeys(users, 1.0), {}
    while users:
        tightest = min(users, key=lambda link: (room[link] / len(users[link]), link))
        share = room[tightest] / len(users[tightest])
        for flow in tuple(users[tightest]):
            shares[flow] = share
            for link in way_of[flow]:
                room[link] -= share
                users[link].discard(flow)
        users = {link: flows for link, flows in users.items() if flows}
    return shares


class QueuedLinks:
    """Messages that pass one at a time, first sent, first moved; each moves once it is first on all its links."""

    def __init__(self, flows: Flows) -> None:
        self._seconds = flows.seconds.tolist()
        self._ways = _ways(flows)
        self._queues: dict[int, deque[int]] = {link: deque() for way in self._ways for link in way}
        self._ends: dict[int, float] = {}  # of the messages that move
        self.begun = np.full(len(flows.row), np.nan)

    def send(self, flow: int, now: float) -> None:
        """Put it at the end of the queues of its links."""
        for link in self._ways[flow]:
            self._queues[link].append(flow)
        self._begin(flow, now)

    def next_end(self) -> float:
        """When the first of those that move has moved."""
        return min(self._ends.values(), default=inf)

    def ended(self, now: float) -> list[int]:
        """Take off those that have moved; what is first on all its links then begins."""
        done = [flow for flow, end in self._ends.items() if end <= now]
        freed = [link for flow in done for link in self._ways[flow]]
        for flow in done:
            del self._ends[flow]
        for link in freed:
            self._queues[link].popleft()
        for link in freed:
            if self._queues[link]:
                self._begin(self._queues[link][0], now)
        return done

    def _begin(self, flow: int, now: float) -> None:
        if flow not in self._ends and all(self._queues[link][0] == flow for link in self._ways[flow]):
            self.begun[flow] = now
            self._ends[flow] = now + self._seconds[flow]


def _ways(flows: Flows) -> list[Way]:
    """The links of each message, each once."""
    return [tuple(sorted({link for link in row if link >= 0})) for row in flows.links.tolist()]
