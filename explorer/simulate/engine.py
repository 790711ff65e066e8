"""The event-by-event engine: one heap, one step; the reference the fast sweep is held against."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from explorer.core import Costs, Graph, Program, Trace, graph_of
from explorer.simulate.layout import Floats, check_costs, lay_out, modelled_memory


class _Engine:
    """Ranks that begin their next slot when everything it waits for has arrived.

    Nothing is visited in a precomputed order: arrivals lie on one heap by time, ties broken by a counter.
    """

    def __init__(self, graph: Graph, slot_seconds: Floats, edge_seconds: Floats) -> None:
        program = graph.program
        self._graph = graph
        self._seconds = slot_seconds
        self._rank_of_slot = program.rank_of_slot
        self._missing = np.diff(graph.edge_offsets).tolist()
        self._queues = [
            deque(range(a, b)) for a, b in zip(program.rank_offsets, program.rank_offsets[1:], strict=False)
        ]
        self._busy = [False] * program.n_ranks
        self._heap: list[tuple[float, int, str, int]] = []
        self._count = 0
        self.start = np.full(program.n_slots, np.nan)
        self.end = np.full(program.n_slots, np.nan)
        target = np.repeat(np.arange(program.n_slots), np.diff(graph.edge_offsets))
        self._outgoing: list[list[tuple[int, float, bool]]] = [[] for _ in range(program.n_slots)]
        for source, to, lag, early in zip(
            graph.source_slot.tolist(),
            target.tolist(),
            edge_seconds.tolist(),
            graph.dependencies.from_start.tolist(),
            strict=True,
        ):
            self._outgoing[source].append((to, lag, early))

    def run(self) -> None:
        for rank in range(len(self._queues)):
            self._begin(rank, 0.0)
        while self._heap:
            self._step()

    def _step(self) -> None:
        now, _, what, slot = heapq.heappop(self._heap)
        if what == "arrive":
            self._missing[slot] -= 1
        else:
            self.end[slot] = now
            self._busy[self._rank_of_slot[slot]] = False
            self._tell(slot, now, early=False)
        self._begin(int(self._rank_of_slot[slot]), now)

    def _begin(self, rank: int, now: float) -> None:
        queue = self._queues[rank]
        if self._busy[rank] or not queue or self._missing[queue[0]]:
            return
        slot = queue.popleft()
        self._busy[rank] = True
        self.start[slot] = now
        self._push(now + self._seconds[slot], "end", slot)
        self._tell(slot, now, early=True)

    def _tell(self, slot: int, now: float, *, early: bool) -> None:
        for target, lag, at_start in self._outgoing[slot]:
            if at_start == early:
                self._push(now + lag, "arrive", target)

    def _push(self, time: float, what: str, slot: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, what, slot))


def simulate_events(program: Program, costs: Costs | None = None) -> Trace:
    """The trace of `program` under `costs`, event by event: slower than `simulate`, and its reference.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.
        CostError: if a cost has the wrong shape.
    """
    costs = check_costs(costs)
    graph = graph_of(program)
    engine = _Engine(graph, costs.slot_seconds(program), costs.edge_seconds(graph))
    engine.run()
    events = lay_out(graph, costs, engine.start, engine.end)
    return Trace(events, program, modelled_memory(graph, costs, engine.start, engine.end), costs)
