"""A large static figure, built and written: pytest -m benchmark tests/benchmarks/test_figures.py"""

from __future__ import annotations

import statistics
import time

import pytest

import explorer as ex

N_RANKS, N_MICRO_BATCHES = 64, 512
N_MESSAGES = 2 * (N_RANKS - 1) * N_MICRO_BATCHES  # an activation and a gradient for each micro-batch and neighbour
# durations that no short number holds, as if measured
STAGES = [1 + 0.001 * (stage * 37 % 64) / 3 for stage in range(N_RANKS)]


@pytest.mark.benchmark
@pytest.mark.parametrize(
    ("name", "costs", "n_messages"),
    [
        ("alone", ex.Costs(), 0),
        ("with messages", ex.Costs(latency=0.1), N_MESSAGES),
        ("with messages, uneven stages", ex.Costs(forward=STAGES, latency=1e-3 / 3), N_MESSAGES),
    ],
)
def test_a_large_figure_is_quickly_built_and_small(table, name, costs, n_messages):
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=N_RANKS, n_micro_batches=N_MICRO_BATCHES), costs)
    ex.timeline(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))).to_json()  # plotly is loaded
    wall, processor = [], []
    for _ in range(5):
        began, began_processor = time.perf_counter(), time.process_time()
        figure = ex.timeline(trace)
        text = figure.to_json()
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_processor)
    table(
        f"timeline of 65,536 actions, {name}",
        {"seconds": statistics.median(wall), "processor s": statistics.median(processor), "MB": len(text) / 1e6},
    )
    assert sum(len(bars.x) for bars in figure.data) == 2 * N_RANKS * N_MICRO_BATCHES + n_messages
    assert len(figure.data) == (4 if n_messages else 2)  # one a kind
    assert len(text) <= 5e6
    assert statistics.median(processor) <= 0.3
