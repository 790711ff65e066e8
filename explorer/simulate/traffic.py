"""The messages of a plan on their links, as the engine sees them: steps that send some, and end when all are there."""

from __future__ import annotations

import numpy as np

from explorer.simulate.layout import Floats
from explorer.simulate.network import network_of
from explorer.simulate.plan import Loads


class Traffic:
    """Steps whose messages share links.

    Attributes:
        changes: how often messages came or went.
    """

    def __init__(self, loads: Loads) -> None:
        self._network = network_of(loads.flows)
        self._latency = loads.flows.latency.tolist()
        self._step = loads.step
        self._flows: dict[int, list[int]] = {}
        for flow, step in enumerate(loads.step.tolist()):
            self._flows.setdefault(step, []).append(flow)
        self._moving = {step: len(flows) for step, flows in self._flows.items()}
        self._until: dict[int, float] = {}
        self._step_of = loads.step.tolist()
        self.changes = 0

    def loads(self, step: int) -> bool:
        """Whether `step` has messages."""
        return step in self._flows

    def send(self, step: int, now: float, until: float) -> None:
        """Put the messages of `step`, which does not end before `until`, on their way."""
        self._until[step] = until
        for flow in self._flows[step]:
            self._network.send(flow, now)
        self.changes += 1

    def next_end(self) -> float:
        """Seconds at which the next message has moved; ∞ if none is under way."""
        return self._network.next_end()

    def ended(self, now: float) -> list[tuple[int, float]]:
        """Take off the messages that have moved now: the steps that have no other, and when each ends."""
        self.changes += 1
        done = []
        for flow in self._network.ended(now):
            step = self._step_of[flow]
            self._moving[step] -= 1
            self._until[step] = max(self._until[step], now + self._latency[flow])
            if not self._moving[step]:
                done.append((step, self._until[step]))
        return done

    def moves(self, start: Floats) -> Floats:
        """(n_steps,) seconds at which each step's first byte moves; where it has none, its start."""
        moves = start.copy()
        moves[self._step] = np.inf
        np.minimum.at(moves, self._step, self._network.begun)
        return moves
