"""Levels over time against counting, drawings and the simulator's own peaks."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.analysis import Levels, in_flight_over_time, memory_over_time, peak_bytes


def simulated(name="1f1b", n_ranks=4, n_micro_batches=8, **costs):
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def test_in_flight_over_time_is_the_drawing():
    # rank 0  F0 F1 . . B0 B0 F2 B1 B1 . B2 B2
    time, count = in_flight_over_time(simulated(n_ranks=2, n_micro_batches=3)).of(0)
    # B0 ends and F2 begins at 6: one row, still two in flight
    assert time.tolist() == [0, 1, 6, 9, 12]
    assert count.tolist() == [1, 2, 2, 1, 0]


@pytest.mark.parametrize("name", ["naive", "gpipe", "1f1b", "forward_only"])
def test_in_flight_over_time_peaks_where_the_measure_says(name):
    trace = simulated(name)
    assert np.array_equal(in_flight_over_time(trace).peaks(), trace.peak_in_flight)


def test_memory_over_time_counts_micro_batches_times_bytes():
    trace = simulated(activation_bytes=100)
    assert np.array_equal(memory_over_time(trace).level, 100 * in_flight_over_time(trace).level)
    assert np.array_equal(memory_over_time(trace).time, in_flight_over_time(trace).time)


def test_peak_bytes_adds_weights_gradients_and_activations():
    # 1F1B: rank r holds P − r micro-batches; gradients are as large as parameters
    trace = simulated(activation_bytes=100, parameter_bytes=7)
    assert peak_bytes(trace).tolist() == [14 + 100 * held for held in (4, 3, 2, 1)]
    assert peak_bytes(trace, category=ex.Category.ACTIVATIONS).tolist() == [400, 300, 200, 100]
    assert peak_bytes(trace, category=ex.Category.PARAMETERS).tolist() == [7] * 4
    assert peak_bytes(trace).dtype == np.int64


def test_peak_bytes_is_zero_where_no_memory_is_known():
    assert peak_bytes(simulated()).tolist() == [0, 0, 0, 0]
    assert len(memory_over_time(simulated()).time) == 0


def test_every_step_counts_from_what_its_own_rows_say():
    rows = {"rank": 0, "delta": [5, 3, -3, 5, 4, -4], "step": [0, 0, 0, 1, 1, 1], "time": [0, 1, 2, 2, 3, 4]}
    trace = ex.Trace(
        ex.Events.of(step=()), ex.schedule("naive", n_ranks=1, n_micro_batches=1), ex.MemoryChanges.of(**rows)
    )
    time, level = memory_over_time(trace).of(0)
    assert time.tolist() == [0, 1, 2, 2, 3, 4]
    assert level.tolist() == [5, 8, 5, 5, 9, 5]


changes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 5), st.integers(-9, 9)), max_size=30)


@given(changes)
@settings(max_examples=80, deadline=None)
def test_levels_equal_sums_taken_one_by_one(rows):
    rank, step, time, delta = np.array(rows, np.int64).reshape(-1, 4).T
    levels = Levels.of_changes(rank, step, time.astype(float), delta, n_ranks=3)
    expected = {}
    for r, s, t, _ in rows:
        expected[r, s, t] = sum(d for (r2, s2, t2, d) in rows if (r2, s2) == (r, s) and t2 <= t)
    for r in range(3):
        wanted = [(t, level) for (r2, _, t), level in sorted(expected.items()) if r2 == r]
        assert list(zip(*(column.tolist() for column in levels.of(r)), strict=True)) == wanted


def test_levels_become_a_frame():
    frame = in_flight_over_time(simulated(n_ranks=2, n_micro_batches=1)).to_frame("count")
    assert frame.to_dict("list") == {"rank": [0, 0, 1, 1], "time": [0.0, 6.0, 1.0, 4.0], "count": [1, 0, 1, 0]}
