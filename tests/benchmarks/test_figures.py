"""A large static figure, built and written: pytest -m benchmark tests/benchmarks/test_figures.py"""

from __future__ import annotations

import statistics
import time

import pytest

import explorer as ex


@pytest.mark.benchmark
def test_a_large_figure_is_quickly_built_and_small(table):
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=64, n_micro_batches=512))
    ex.timeline(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))).to_json()  # plotly is loaded
    wall, processor = [], []
    for _ in range(5):
        began, began_processor = time.perf_counter(), time.process_time()
        figure = ex.timeline(trace)
        text = figure.to_json()
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_processor)
    table(
        "timeline of 65,536 actions",
        {"seconds": statistics.median(wall), "processor s": statistics.median(processor), "MB": len(text) / 1e6},
    )
    assert sum(len(bars.x) for bars in figure.data) == 2 * 64 * 512
    assert len(figure.data) == 2  # one a kind
    assert len(text) <= 5e6
    assert statistics.median(processor) <= 0.3
