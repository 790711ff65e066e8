"""The event-by-event engine: one heap, one step; the reference the fast sweep is held against."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import pairwise

import numpy as np

from explorer.core import Costs, Graph, MessageRule, Program, Trace, graph_of
from explorer.simulate.layout import Floats, check_costs, lay_out, modelled_memory
from explorer.simulate.meetings import trace_of_meetings
from explorer.simulate.plan import Order, Plan


class _Engine:
    """Lines that begin their next step when everything it waits for has arrived.

    Nothing is visited in a precomputed order: arrivals lie on one heap by time, ties broken by a counter.
    """

    def __init__(self, plan: Plan) -> None:
        n = len(plan.seconds)
        self._seconds = plan.seconds
        self._line = np.repeat(np.arange(len(plan.line_offsets) - 1), np.diff(plan.line_offsets)).tolist()
        self._missing = np.diff(plan.edge_offsets).tolist()
        self._queues = [deque(range(a, b)) for a, b in pairwise(plan.line_offsets.tolist())]
        self._busy = [False] * len(self._queues)
        self._heap: list[tuple[float, int, str, int]] = []
        self._count = 0
        self.start = np.full(n, np.nan)
        self.end = np.full(n, np.nan)
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
        now, _, what, step = heapq.heappop(self._heap)
        if what == "arrive":
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
        self._push(now + self._seconds[step], "end", step)
        self._tell(step, now, early=True)

    def _tell(self, step: int, now: float, *, early: bool) -> None:
        for target, lag, at_start in self._outgoing[step]:
            if at_start == early:
                self._push(now + lag, "arrive", target)

    def _push(self, time: float, what: str, step: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, what, step))


def run_events(plan: Plan, order: Order | None = None) -> tuple[Floats, Floats]:
    """Start and end of each step of `plan`, both (n_steps,) seconds; it finds the order by itself."""
    engine = _Engine(plan)
    engine.run()
    return engine.start, engine.end


def slot_events(graph: Graph, slot_seconds: Floats, edge_seconds: Floats) -> tuple[Floats, Floats]:
    """As `slot_times`, event by event: the lines are the ranks, the steps their slots."""
    edges = graph.dependencies
    offsets = graph.program.rank_offsets
    return run_events(
        Plan(slot_seconds, offsets, graph.edge_offsets, graph.source_slot, edges.from_start, edge_seconds)
    )


def simulate_events(program: Program, costs: Costs | None = None, *, messages: MessageRule | None = None) -> Trace:
    """The trace of `program` under `costs`, event by event: slower than `simulate`, and its reference.

    Args:
        program: any program that `check` approves; with `messages`, one that has messages.
        costs: seconds and bytes; `Costs()` if not given.
        messages: as in `simulate`.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.
        CostError: if a cost has the wrong shape.
        InputError: if there is no such rule of messages.
    """
    costs = check_costs(costs)
    if messages is not None:
        return trace_of_meetings(program, costs, messages, run_events)
    graph = graph_of(program)
    start, end = slot_events(graph, costs.slot_seconds(program), costs.edge_seconds(graph))
    return Trace(lay_out(graph, costs, start, end), program, modelled_memory(graph, costs, start, end), costs)
