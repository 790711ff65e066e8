"""How fast schedules are swept: pytest -m benchmark -s tests/benchmarks/test_sweep.py"""

from __future__ import annotations

import time

import pytest

import explorer as ex

SCHEDULES = ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "v_half", "dualpipe", "hanayo"]
SIZES = {"n_ranks": [2, 4, 8, 16, 32], "n_micro_batches": [8, 16, 32, 64, 128]}
LIMIT = 2.0  # seconds of one core for 200 points, once compiled loops are loaded


@pytest.mark.benchmark
def test_two_hundred_points_are_swept_within_two_seconds():
    costs = ex.Costs.per_rank_share(forward=1.0, backward=2.0, activation_bytes=100, parameter_bytes=10)
    ex.sweep("1f1b", n_ranks=32, n_micro_batches=128, costs=costs)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = ex.sweep(SCHEDULES, **SIZES, costs=costs)
        seconds.append(time.process_time() - begin)
    print(f"\n200 points, {found['legal'].sum()} of them legal: {seconds[0]:.2f} s, again {min(seconds[1:]):.2f} s")
    assert len(found) == len(SCHEDULES) * 25
    assert min(seconds) < LIMIT
