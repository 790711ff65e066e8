"""How fast programs are made, checked and simulated: 65,536 actions and a million, against the reference engine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

import explorer as ex
from explorer.core.graph import build

pytestmark = pytest.mark.benchmark


def median_ms(work: Callable[[], Any], *, repeats: int = 7) -> float:
    """Milliseconds of the middle one of several calls, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def test_sweep_beats_the_reference_by_far(table: Callable[..., None]) -> None:
    program = ex.schedule("1f1b", n_ranks=32, n_micro_batches=256)
    costs = ex.Costs(latency=0.1)
    assert len(ex.simulate(program, costs).events) == 2 * 32 * 256 + 2 * 31 * 256  # actions and messages
    fast = median_ms(lambda: ex.simulate(program, costs))
    slow = median_ms(lambda: ex.simulate_events(program, costs))
    table("simulate 1f1b 32×256", {"sweep ms": fast, "event by event ms": slow, "ratio": slow / fast})
    assert slow > 3 * fast


@pytest.mark.parametrize(("n_ranks", "m"), [(8, 32), (64, 512), (64, 7813)])
def test_every_part_grows_no_faster_than_the_actions(table: Callable[..., None], n_ranks: int, m: int) -> None:
    numbers = {"n_ranks": n_ranks, "n_micro_batches": m}
    costs = ex.Costs(latency=0.1, activation_bytes=1.0)
    program = ex.schedule("1f1b", **numbers)
    assert program.n_actions == 2 * n_ranks * m
    trace = ex.simulate(program, costs)
    assert len(trace.events) == program.n_actions + 2 * (n_ranks - 1) * m
    parts = {
        "actions": program.n_actions,
        "schedule ms": median_ms(lambda: ex.schedule("1f1b", **numbers), repeats=3),
        "check and graph ms": median_ms(lambda: build(program), repeats=3),
        "simulate ms": median_ms(lambda: ex.simulate(program, costs), repeats=3),
        "measures ms": median_ms(lambda: ex.Trace(trace.events, program).summary(), repeats=3),
    }
    parts["µs an action"] = sum(v for k, v in parts.items() if k.endswith("ms")) / program.n_actions * 1e3
    table(f"1f1b {n_ranks}×{m}", parts)
