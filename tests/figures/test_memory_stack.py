"""What the stacked memory chart shows, against sums worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.core import Category, MemoryChanges
from explorer.figures.memory_stack import memory_stack_info

MIB = 1 << 20


def simulated(name="1f1b", n_ranks=2, n_micro_batches=3, **costs):
    costs = {"activation_bytes": 4 * MIB, "parameter_bytes": 3 * MIB, **costs}
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def test_memory_stack_shows_each_category_on_common_times():
    # rank 0  F0 F1 . . B0 B0 F2 B1 B1 . B2 B2
    info = memory_stack_info(simulated(), 0)
    assert info.time.tolist() == [0, 1, 6, 9, 12]
    layers = {category: (level / MIB).tolist() for category, level in info.layers.items()}
    assert layers == {
        Category.PARAMETERS: [3] * 5,
        Category.GRADIENTS: [3] * 5,
        Category.ACTIVATIONS: [4, 8, 8, 4, 0],
    }
    assert info.peak == (1, 14 * MIB)
    assert info.unit.name == "MiB"


def test_memory_stack_begins_every_step_from_nothing():
    # what a step's rows do not say was not there: gradients of step 0 are given back between steps
    trace = simulated()
    rows = {"rank": 0, "stage": 0, "micro_batch": -1}
    memory = MemoryChanges.of(
        step=[0, 0, 1, 1],
        time=[0.0, 1.0, 5.0, 6.0],
        category=[Category.PARAMETERS, Category.GRADIENTS, Category.PARAMETERS, Category.ACTIVATIONS],
        delta=[2 * MIB, 7 * MIB, 2 * MIB, 4 * MIB],
        **rows,
    )
    info = memory_stack_info(replace(trace, memory=memory), 0)
    assert info.time.tolist() == [0, 1, 5, 6, 12]
    assert {category: (level / MIB).tolist() for category, level in info.layers.items()} == {
        Category.PARAMETERS: [2] * 5,
        Category.GRADIENTS: [0, 7, 0, 0, 0],
        Category.ACTIVATIONS: [0, 0, 0, 4, 4],
    }
    assert info.peak == (1, 9 * MIB)


def test_memory_stack_counts_what_is_given_and_taken_at_one_instant_once():
    # rank 0's first B ends where its next F begins, up to rounding: 4 + 4 is no 12
    times = [0.0, 1.0, 0.1 + 0.2, 0.3]  # 0.1 + 0.2 is a little more than 0.3
    memory = MemoryChanges.of(
        step=0, time=times, rank=0, stage=0, micro_batch=[0, 0, 0, 1], delta=[4, -4, -4, 4], category=3
    )
    info = memory_stack_info(replace(simulated(), memory=memory), 0)
    assert info.layers[Category.ACTIVATIONS].max() == 4


def test_memory_stack_of_a_rank_that_holds_nothing_is_empty():
    trace = simulated()
    info = memory_stack_info(replace(trace, memory=trace.memory.take(trace.memory.rank == 0)), 1)
    assert (info.layers, info.peak[1]) == ({}, 0)


def test_memory_stack_takes_the_fullest_rank_and_says_what_is_at_its_peak():
    info = memory_stack_info(simulated(n_ranks=4, n_micro_batches=8), device_bytes=20 * MIB)
    assert info.rank == 0  # 1F1B: rank r holds P − r
    assert info.subtitle == (
        "peak 22 MiB at 3, 16 MiB of them for 4 micro-batches × stages · 2 MiB above what the device has"
    )


def test_memory_stack_draws_layers_prediction_device_and_peak():
    figure = ex.memory_stack(simulated(), 0, predicted=simulated(activation_bytes=5 * MIB), device_bytes=32 * MIB)
    assert [trace.name for trace in figure.data] == [
        *("parameters", "gradients", "activations"),
        *("predicted, in all", "the device has", "peak"),
    ]
    assert figure.data[3].y.max() == 16
    assert set(figure.data[4].y) == {32}
    assert "4 MiB activations, stage 0, micro-batch 1" in figure.data[5].text[0]


def test_memory_stack_lists_the_largest_holders_and_counts_the_rest():
    figure = ex.memory_stack(simulated("gpipe", n_micro_batches=20), 0)
    assert figure.data[-1].text[0].count("<br>") == 8
    assert figure.data[-1].text[0].endswith("… 14 more")  # 20 activations, parameters and gradients, 8 of them told


def test_memory_stack_leaves_out_a_prediction_without_bytes():
    unknown = simulated(activation_bytes=0, parameter_bytes=0)
    assert memory_stack_info(simulated(), predicted=unknown).predicted is None


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda: ex.memory_stack(simulated(activation_bytes=0, parameter_bytes=0)), "this trace knows none"),
        (lambda: ex.memory_stack(simulated(), 2), "rank is a whole number from 0 to 1; got 2"),
        (lambda: ex.memory_stack(simulated(), predicted=simulated(n_ranks=3)), "a trace of as many ranks; got 3"),
        (lambda: ex.memory_stack(3), "memory_stack draws a Trace; got int"),
    ],
)
def test_what_memory_stack_cannot_draw_is_refused(give, message):
    with pytest.raises(ex.ExplorerError, match=message):
        give()


def test_memory_shows_what_the_device_has():
    figure = ex.memory(simulated(), device_bytes=32 * MIB)
    assert figure.data[-1].name == "the device has"
    assert np.array_equal(figure.data[-1].y, [32, 32])
    with pytest.raises(ex.ExplorerError, match="device_bytes is bytes, above 0; got 0"):
        ex.memory(simulated(), device_bytes=0)
