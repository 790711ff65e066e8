"""The event-by-event engine: one heap, one step; the reference the fast sweep is held against."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import pairwise
from math import inf

import numpy as np

from explorer.simulate.layout import Floats
from explorer.simulate.plan import Order, Plan, Times
from explorer.simulate.traffic import Traffic

# what an event is; at the same time the smaller comes first, and a send after all that may send besides
_ARRIVE, _END, _MOVED, _SEND = range(4)


class _Engine:
    """Lines that begin their next step when everything it waits for has arrived.

    Nothing is visited in a precomputed order: events lie on one heap by time, then what they are, then of which step.
    """

    def __init__(self, plan: Plan) -> None:
        n = len(plan.seconds)
        self._seconds = plan.seconds
        self._line = np.repeat(np.arange(len(plan.line_offsets) - 1), np.diff(plan.line_offsets)).tolist()
        self._missing = np.diff(plan.edge_offsets).tolist()
        self._queues = [deque(range(a, b)) for a, b in pairwise(plan.line_offsets.tolist())]
        self._busy = [False] * len(self._queues)
        self._heap: list[tuple[float, int, int]] = []
        self.start = np.full(n, np.nan)
        self.end = np.full(n, np.nan)
        self._traffic = None if plan.loads is None else Traffic(plan.loads)
        target = np.repeat(np.arange(n), np.diff(plan.edge_offsets))
        self._outgoing: list[list[tuple[int, float, bool]]] = [[] for _ in range(n)]
        columns = (plan.source, target, plan.lag, plan.from_start)
        for source, to, lag, early in zip(*(column.tolist() for column in columns), strict=True):
            self._outgoing[source].append((to, lag, early))

    def run(self) -> None:
        for line in range(len(self._queues)):
            self._begin(line, 0.0)
        while self._heap:
            self._step()

    def _step(self) -> None:
        now, what, step = heapq.heappop(self._heap)
        if what >= _MOVED:
            self._traffic_step(now, what, step)
            return
        if what == _ARRIVE:
            self._missing[step] -= 1
        else:
            self.end[step] = now
            self._busy[self._line[step]] = False
            self._tell(step, now, early=False)
        self._begin(self._line[step], now)

    def _begin(self, line: int, now: float) -> None:
        queue = self._queues[line]
        if self._busy[line] or not queue or self._missing[queue[0]]:
            return
        step = queue.popleft()
        self._busy[line] = True
        self.start[step] = now
        if self._traffic is not None and self._traffic.loads(step):
            self._push(now, _SEND, step)
        else:
            self._push(now + self._seconds[step], _END, step)
        self._tell(step, now, early=True)

    def _traffic_step(self, now: float, what: int, number: int) -> None:
        """Send the messages of step `number`; or see what has moved, if none came or went since that was foreseen."""
        traffic = self._traffic
        if traffic is None or (what == _MOVED and number != traffic.changes):
            return
        if what == _SEND:
            traffic.send(number, now, now + self._seconds[number])
        else:
            for step, end in traffic.ended(now):
                self._push(end, _END, step)
        if (at := traffic.next_end()) < inf:
            self._push(at, _MOVED, traffic.changes)

    def _tell(self, step: int, now: float, *, early: bool) -> None:
        for target, lag, at_start in self._outgoing[step]:
            if at_start == early:
                self._push(now + lag, _ARRIVE, target)

    def _push(self, time: float, what: int, number: int) -> None:
        heapq.heappush(self._heap, (time, what, number))

    @property
    def moves(self) -> Floats:
        """(n_steps,) seconds, as in Times."""
        return self.start if self._traffic is None else self._traffic.moves(self.start)


def run_events(plan: Plan, order: Order | None = None) -> Times:
    """The times of any `plan`; it finds the order by itself."""
    engine = _Engine(plan)
    engine.run()
    return Times(engine.start, engine.end, engine.moves)
