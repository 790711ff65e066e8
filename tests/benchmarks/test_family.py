"""CPU seconds on one core, and bytes an action, of every schedule at 64 ranks × 512 micro-batches."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import explorer as ex
from explorer.core import graph_of
from explorer.schedules import REGISTRY
from explorer.simulate import slot_times

pytestmark = pytest.mark.benchmark

# seconds allowed for making, checking and simulating
_LIMITS = {"1f1b": 0.05, "interleaved_1f1b": 0.1, "zb_v": 0.3, "v_half": 0.3, "dualpipev": 0.3}


def cpu_seconds(work: Callable[[], Any], *, repeats: int = 7) -> float:
    """Of the middle one of several calls, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


@pytest.mark.parametrize("name", list(REGISTRY))
def test_made_checked_and_simulated(table: Callable[..., None], name: str) -> None:
    def work() -> ex.Trace:
        return ex.simulate(ex.schedule(name, n_ranks=64, n_micro_batches=512))

    begin = time.process_time()
    program = work().program
    first = time.process_time() - begin
    assert (program.kind == ex.Kind.F).sum() == program.n_stages * 512 * program.n_segments
    took = cpu_seconds(work)
    table(f"{name} 64×512", {"actions": program.n_actions, "first call s": first, "s": took})
    assert took <= _LIMITS.get(name, 0.5)


@pytest.mark.parametrize("name", ["v_half", "v_min", "zb_v"])
def test_made_for_many_ranks(table: Callable[..., None], name: str) -> None:
    took = cpu_seconds(lambda: ex.schedule(name, n_ranks=256, n_micro_batches=1024), repeats=3)
    table(f"{name} 256×1024", {"made in s": took})
    assert took <= 1.0


def test_costs_that_change_are_swept_anew(table: Callable[..., None]) -> None:
    program = ex.schedule("1f1b", n_ranks=64, n_micro_batches=2048)
    graph = graph_of(program)
    assert program.n_actions == 262_144
    prices = iter(range(1, 100))

    def retime() -> None:
        costs = ex.Costs(forward=float(next(prices)))
        slot_times(graph, costs.slot_seconds(program), costs.edge_seconds(graph))

    took = cpu_seconds(retime, repeats=15)
    table("re-timing 262,144 actions", {"ms": took * 1e3})
    assert took <= 0.010


def test_messages_that_meet_on_shared_links(table: Callable[..., None]) -> None:
    program = ex.schedule("1f1b", n_ranks=64, n_micro_batches=512)
    links = ex.node_links(64, ranks_per_node=8)
    alone, shared = (ex.Costs(latency=0.05, bandwidth=1.0, message_bytes=0.8, links=way) for way in (None, links))
    assert ex.simulate(program, shared).makespan > ex.simulate(program, alone).makespan
    took = cpu_seconds(lambda: ex.simulate(program, shared))
    table("1f1b 64×512, 8 ranks a node", {"actions": program.n_actions, "s": took})
    assert took <= 0.3


def test_a_million_actions(table: Callable[..., None]) -> None:
    program = ex.schedule("1f1b", n_ranks=64, n_micro_batches=7813)
    assert program.n_actions >= 1_000_000
    took = cpu_seconds(lambda: ex.simulate(program), repeats=3)
    table("1,000,000 actions simulated", {"s": took})
    assert took <= 0.5


def test_memory_of_a_million_actions(table: Callable[..., None]) -> None:
    tracemalloc.start()
    try:
        program = ex.schedule("1f1b", n_ranks=64, n_micro_batches=7813)
        trace = ex.simulate(program)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trace.events) == program.n_actions
    table("made, checked and simulated", {"actions": program.n_actions, "bytes an action": peak / program.n_actions})
    assert peak / program.n_actions <= 200
