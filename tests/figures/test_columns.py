"""Columns in as few bytes as tell what they hold."""

import numpy as np
import pytest

import explorer as ex
from explorer.figures.columns import halved, packed, short_times, small_integers
from tests.figures.test_timeline import unpacked


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 255], np.uint8),
        ([0, 256], np.uint16),
        ([-1, 127], np.int8),
        ([-1, 255], np.int16),
        ([-1, 511], np.int16),
        ([0, 70_000], np.uint32),
        ([], np.uint8),
    ],
)
def test_integers_are_as_short_as_the_least_and_most_allow(values, dtype):
    short = small_integers(np.array(values, np.int32))
    assert (short.dtype, short.tolist()) == (dtype, values)


def test_times_are_short_only_where_that_moves_no_bar():
    durations = np.array([1.0, 0.0])  # what takes no time is not seen
    assert short_times(np.array([3.0, 2.0**24]), durations).dtype == np.float32  # each exactly a short number
    assert short_times(np.array([3.0, 2.0**24 + 1]), durations).dtype == np.float64  # no short number
    assert short_times(np.array([0.1, 0.2]), durations).dtype == np.float32  # 3e-9 of the shortest bar
    assert short_times(np.array([100.1, 0.2]), durations).dtype == np.float64  # 2e-6 of it


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
def test_packed_columns_read_back_are_the_same(dtype):
    table = np.arange(6).reshape(3, 2).astype(dtype)
    assert unpacked(packed(table)).tolist() == table.tolist()
    assert unpacked(packed(table[:, 0])).tolist() == table[:, 0].tolist()
    assert np.dtype(packed(table)["dtype"]) == dtype


def test_what_is_too_large_for_seven_digits_is_kept_whole():
    assert halved(np.array([0.1])).dtype == np.float32
    assert halved(np.array([0.1, -1e90])).tolist() == [0.1, -1e90]
    assert short_times(np.array([1e90]), np.array([1e90])).tolist() == [
        1e90
    ]  # and warns of nothing: warnings are errors


def test_absurd_times_are_drawn_without_a_warning():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    trace = ex.simulate(program, ex.Costs(forward=1e90, backward=2e90, latency=1e80))
    (forward, *_) = ex.timeline(trace).data
    assert max(forward.x) == 1e90
    assert ex.compare(trace, trace).data
