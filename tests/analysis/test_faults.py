"""Faults that a trace's marks tell of: they are told apart from what is heavy by itself."""

from dataclasses import replace

import pytest

import explorer as ex
from explorer.core import Mark
from explorer.execute import faults

PROGRAM = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)


def run(costs, *put, step=0):
    """A trace as a run leaves it: no costs, but marks of the faults."""
    trace = ex.simulate(PROGRAM, costs)
    marks = tuple(Mark(step, 2, 0.0, fault if isinstance(fault, str) else str(fault)) for fault in put)
    return replace(trace, costs=None, marks=marks)


def test_a_rank_that_a_fault_slows_down_is_a_straggler_and_no_heavy_stage():
    slowed = ex.Costs(time_factor=[1, 1, 1.5, 1])
    plain, marked = run(slowed), run(slowed, faults.SlowRank(rank=2, factor=1.5))
    assert set(ex.idle_causes(plain).cause) >= {"imbalance"}
    rows = ex.idle_causes(marked)
    assert "imbalance" not in set(rows.cause)
    late = rows[rows.cause == "straggler"]
    assert set(late.at_rank) == {2}
    assert all("is on a rank that a fault slows down" in text for text in late.sentence)
    assert [ex.idle_intervals(marked).sentence(row) for row in late.index] == list(late.sentence)
    best = ex.gains(marked).iloc[0]
    # 33 = (8 + 4 − 1)(1 + 2): the step of equal ranks
    assert (best.cause, best["rank"], best.makespan, best.promise) == ("straggler", 2, pytest.approx(33), "exact")
    assert best.remedy == "rank 2 runs without the fault that slows it down (1.5×)"


def test_a_heavy_stage_beside_a_fault_keeps_its_name():
    both = ex.Costs(forward=[1, 1, 1, 1.25], time_factor=[1, 1, 1.5, 1])
    found = ex.gains(run(both, faults.SlowRank(rank=2, factor=1.5)))
    assert set(found[found.cause == "straggler"]["rank"]) == {2}
    assert set(found[found.cause == "imbalance"].stage) == {3}


def test_an_action_that_a_fault_holds_up_is_known_though_it_has_no_like():
    # of one micro-batch no median tells which action took longer
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)
    trace = replace(ex.simulate(program, ex.Costs(delays={"1F0": 0.5})), costs=None)
    marked = replace(trace, marks=(Mark(0, 1, 1.0, str(faults.DelayAction(action="1F0", seconds=0.5))),))
    assert "hiccup" not in set(ex.idle_causes(trace).cause)
    row = ex.idle_causes(marked).query("cause == 'hiccup'")
    assert row.seconds.sum() == pytest.approx(0.5)
    assert row.sentence.item().endswith("F of micro-batch 0 on stage 1 was held up by a fault")
    best = ex.gains(marked).iloc[0]
    assert (best.remedy, best.gain) == ("F of micro-batch 0 on stage 1 is not held up by a fault", pytest.approx(0.5))


@pytest.mark.parametrize(
    "text",
    [
        *("a note", "slow rank=9 factor=2", "slow rank=2 factor=1e999", "slow rank=2 factor=-3", "kill rank=2 step=1"),
        *("delay action=9F9 seconds=1", "delay action=what seconds=1", "slow rank=² factor=2"),
    ],
)
def test_marks_of_nothing_that_ran_change_nothing(text):
    slowed = ex.Costs(time_factor=[1, 1, 1.5, 1])
    assert ex.idle_causes(run(slowed, text)).equals(ex.idle_causes(run(slowed)))


def test_a_fault_counts_in_the_step_that_is_marked():
    slowed = ex.Costs(time_factor=[1, 1, 1.5, 1])
    assert "straggler" not in set(ex.idle_causes(run(slowed, "slow rank=2 factor=1.5", step=1)).cause)


def test_two_faults_of_a_rank_multiply():
    found = ex.gains(run(ex.Costs(time_factor=[1, 1, 3, 1]), "slow rank=2 factor=2", "slow rank=2 factor=1.5"))
    assert (found.iloc[0].cause, found.iloc[0].makespan) == ("straggler", pytest.approx(33))
