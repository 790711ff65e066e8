"""Residuals and the step that stands for a trace, against numbers that were put in."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.analysis import aligned_step, median_step


def simulated(name="1f1b", n_ranks=2, n_micro_batches=2, **costs):
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def steps(*forwards, gap=5.0):
    """A trace of one step for each forward time, with a gap between them."""
    traces = [simulated(n_ranks=1, n_micro_batches=1, forward=forward, backward=1.0) for forward in forwards]
    events, begin = [], gap
    for number, trace in enumerate(traces):
        one = trace.events
        here = np.full(len(one), number, np.int32)
        events.append(replace(one, step=here, start=one.start + begin, end=one.end + begin))
        begin += trace.makespan + gap
    return ex.Trace(ex.Events.concatenate(*events), traces[0].program)


@pytest.mark.parametrize(
    ("forwards", "number"),
    [((9,), 0), ((9, 1), 1), ((9, 3, 1, 2), 3), ((120, 33, 34, 32), 1), ((9, 1, 2, 3, 4), 2)],
)
def test_median_step_leaves_out_the_first_and_is_a_step(forwards, number):
    assert median_step(steps(*forwards)) == number


def test_median_step_of_nothing_is_refused():
    with pytest.raises(ex.ExplorerError, match="needs traces with at least one step"):
        median_step(ex.Trace(ex.Events.of(step=()), simulated().program))


def test_aligned_step_begins_at_zero_and_keeps_durations():
    one = aligned_step(steps(9, 3, 1, 2))
    # F takes 2, B 1
    assert (one.events.start.tolist(), one.events.end.tolist()) == ([0, 2], [2, 3])
    assert aligned_step(steps(9, 3), step=0).makespan == 10


def test_aligned_step_moves_memory_with_it():
    trace = simulated(activation_bytes=4, parameter_bytes=1)
    late = replace(trace.events, start=trace.events.start + 7, end=trace.events.end + 7)
    memory = replace(trace.memory, time=trace.memory.time + 7)
    moved = aligned_step(replace(trace, events=late, memory=memory))
    assert np.array_equal(moved.memory.time, trace.memory.time)


def test_residuals_give_back_the_factor_of_a_slow_rank():
    # rank 0  F0 F1 . .  B0 B0 B1 B1    predicted, each rank's own actions; rank 1 takes twice as long
    frame = ex.residuals(simulated(), simulated(time_factor=[1, 2]))
    assert frame.loc[frame["rank"] == 0, "ratio"].unique().tolist() == [1]
    assert frame.loc[frame["rank"] == 1, "ratio"].unique().tolist() == [2]
    assert frame.loc[(frame["rank"] == 1) & (frame["kind"] == "B"), "difference"].tolist() == [2, 2]
    # B0 of rank 0 started at 4, and now after F0 (1), rank 1's F0 (2) and B0 (4): at 7
    starts = frame.loc[(frame["rank"] == 0) & (frame["kind"] == "B"), ["predicted_start", "measured_start"]]
    assert starts.iloc[0].tolist() == [4, 7]


def test_residuals_are_of_the_actions_that_both_have():
    whole, split = simulated("1f1b", 4, 8), simulated("zb_h1", 4, 8)
    frame = ex.residuals(whole, split)
    assert frame["kind"].unique().tolist() == ["F"]
    assert len(frame) == 4 * 8
    assert (frame["difference"] == 0).all()


def test_residuals_of_an_instant_have_no_ratio():
    frame = ex.residuals(simulated(forward=0.0, backward=1.0), simulated(forward=1.0, backward=1.0))
    assert frame.loc[frame["kind"] == "F", "ratio"].isna().all()


def test_residuals_refuse_traces_that_share_nothing():
    backward = ex.Trace(simulated().events.take(simulated().events.kind == ex.Kind.B), simulated().program)
    forward = ex.Trace(simulated().events.take(simulated().events.kind == ex.Kind.F), simulated().program)
    with pytest.raises(ex.ExplorerError, match=r"share none on the same rank \(0F0 on rank 0 and 0B0 on rank 0\)"):
        ex.residuals(forward, backward)


def test_residuals_refuse_what_is_no_trace_and_a_step_that_is_not_there():
    with pytest.raises(ex.ExplorerError, match="this needs a Trace; got int"):
        ex.residuals(simulated(), 3)
    with pytest.raises(ex.ExplorerError, match="the steps there are: 0"):
        ex.residuals(simulated(), simulated(), step=4)
