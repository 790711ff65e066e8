"""Sweeps: every point of the grid, each with its numbers or its reason."""

import itertools

import pytest

import explorer as ex
from explorer.planner import Outcome, sweep_outcomes


def test_sweep_has_a_row_for_each_combination_in_order():
    found = ex.sweep(["gpipe", "1f1b"], n_ranks=[2, 4], n_micro_batches=range(2, 5))
    keys = found[["schedule", "n_ranks", "n_micro_batches"]].itertuples(index=False, name=None)
    assert list(keys) == list(itertools.product(["gpipe", "1f1b"], [2, 4], [2, 3, 4]))
    assert (found["makespan"] == (found["n_micro_batches"] + found["n_ranks"] - 1) * 3).all()
    assert (found["seconds_per_micro_batch"] * found["n_micro_batches"] == found["makespan"]).all()


def test_sweep_says_why_a_schedule_does_not_exist():
    found = ex.sweep(["dualpipe", "1f1b"], n_ranks=4, n_micro_batches=[6, 8], n_chunks=[None, 2])
    legal = found.set_index(["schedule", "n_micro_batches", "n_chunks"])["legal"]
    assert legal["dualpipe", 8, 1]
    assert not legal["dualpipe", 6, 1]
    assert not legal["1f1b", 8, 2]
    reasons = found["reason"].tolist()
    assert "at least 8" in reasons[0]
    assert "n_chunks is 1; got 2" in reasons[-1]
    assert [bool(reason) for reason in reasons] == (~found["legal"]).tolist()


def test_sweep_agrees_with_the_simulator():
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0, latency=0.1, activation_bytes=64, parameter_bytes=8)
    for row in ex.sweep(["zb_v", "interleaved_1f1b"], n_ranks=4, n_micro_batches=[4, 8], costs=share).itertuples():
        program = ex.schedule(row.schedule, n_ranks=row.n_ranks, n_micro_batches=row.n_micro_batches)
        if row.schedule == "zb_v":  # which searches with the costs it is given
            program = ex.schedule("zb_v", n_ranks=4, n_micro_batches=row.n_micro_batches, costs=share)
        trace = ex.simulate(program, share.for_program(program))
        assert row.makespan == trace.makespan
        assert row.bubble_ratio == trace.bubble_ratio
        assert row.peak_bytes == ex.peak_bytes(trace).max()
        assert row.peak_in_flight == trace.peak_in_flight.max()


def test_sweep_marks_what_is_over_the_limit_and_keeps_its_numbers():
    share = ex.Costs.per_rank_share(activation_bytes=100)
    found = ex.sweep("gpipe", n_ranks=4, n_micro_batches=[2, 4, 8], costs=share, memory_limit=400)
    assert found["legal"].tolist() == [True, True, False]
    assert found["peak_bytes"].tolist() == [200, 400, 800]
    assert found["makespan"].tolist() == [15, 21, 33]


def test_sweep_outcomes_are_worked_out_when_asked_for():
    built = []

    def counted(*, n_ranks, n_micro_batches, n_chunks):
        built.append(n_micro_batches)
        return ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)

    ex.register("counted", counted)
    try:
        outcomes = sweep_outcomes("counted", n_ranks=2, n_micro_batches=[3, 4, 5])
        before = len(built)
        first = next(outcomes)
        assert isinstance(first, Outcome)
        assert (first.makespan, built[before:]) == (12, [3])
    finally:
        ex.unregister("counted")


def test_sweep_follows_a_schedule_that_is_registered_anew():
    def registered(name):
        def build(*, n_ranks, n_micro_batches, n_chunks):
            return ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)

        ex.register("changing", build)
        try:
            return ex.sweep("changing", n_ranks=2, n_micro_batches=4)["peak_in_flight"].item()
        finally:
            ex.unregister("changing")

    assert (registered("gpipe"), registered("1f1b")) == (4, 2)


def test_costs_that_fit_no_such_number_of_ranks_are_a_reason():
    share = ex.Costs.per_rank_share(forward=[1.0, 2.0])
    found = ex.sweep("1f1b", n_ranks=[2, 4], n_micro_batches=4, costs=share)
    assert found["legal"].tolist() == [True, False]
    assert "forward is a number or (4,), by rank" in found["reason"].iloc[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_ranks": []}, "n_ranks is a whole number or several"),
        ({"n_micro_batches": [4, 2.5]}, "n_micro_batches is a whole number or several"),
        ({"n_chunks": ["2"]}, "n_chunks is a whole number or several"),
        ({"schedules": "1f1"}, "did you mean 1f1b"),
    ],
)
def test_what_cannot_be_swept_is_refused_at_once(changes, message):
    asked = {"schedules": ["1f1b"], "n_ranks": 4, "n_micro_batches": 8, **changes}
    with pytest.raises(ex.ExplorerError, match=message):
        sweep_outcomes(**asked)
