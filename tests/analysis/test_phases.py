"""Warm-up, steady and cool-down against drawn pipelines."""

import numpy as np
import pytest

import explorer as ex
from explorer.analysis import phases


def spans(trace, rank, step=0):
    """(start, end) of the rank's three phases."""
    frame = phases(trace)
    rows = frame[(frame["rank"] == rank) & (frame.step == step)]
    assert list(rows.phase) == ["warm-up", "steady", "cool-down"]
    return [(row.start, row.end) for row in rows.itertuples()]


def test_phases_of_1f1b_are_those_of_the_drawing():
    # F = 1, B = 2:   rank 0  F0 F1 .  .  .  B0 B0 F2 B1 B1 .  B2 B2      first B at 4
    #                 rank 1  .  F0 B0 B0 F1 B1 B1 .  F2 B2 B2
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=3))
    assert spans(trace, 0) == [(0, 4), (4, 7), (7, 12)]
    assert spans(trace, 1) == [(1, 2), (2, 8), (8, 10)]


def test_phases_of_gpipe_have_no_steady_state():
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=3, n_micro_batches=4))
    for rank in range(3):
        _, (steady_from, steady_until), _ = spans(trace, rank)
        assert steady_from == steady_until


def test_phases_of_forward_only_are_steady_throughout():
    trace = ex.simulate(ex.schedule("forward_only", n_ranks=3, n_micro_batches=4))
    assert spans(trace, 2) == [(2, 2), (2, 6), (6, 6)]


@pytest.mark.parametrize(("n_ranks", "n_micro_batches"), [(1, 1), (4, 8), (8, 3)])
def test_warm_up_of_1f1b_holds_the_forwards_of_its_definition(n_ranks, n_micro_batches):
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches))
    events = trace.events
    for rank in range(n_ranks):
        (start, end), _, _ = spans(trace, rank)
        rows = (events.rank == rank) & (events.kind == ex.Kind.F) & (events.start >= start) & (events.start < end)
        # rank r begins with min(P−1−r, M) forwards; one more comes before its first backward where there is one left
        assert rows.sum() == min(n_ranks - rank, n_micro_batches)


def test_phases_are_told_for_each_step():
    one = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=3))
    later = {**one.events.columns(), "step": 1, "start": one.events.start + 100, "end": one.events.end + 100}
    two = ex.Trace(ex.Events.concatenate(one.events, ex.Events.of(**later)), one.program)
    assert spans(two, 0, step=1) == [(100, 104), (104, 107), (107, 112)]


def test_phases_of_an_empty_trace_are_none():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=3)
    assert len(phases(ex.Trace(ex.Events.of(step=()), program))) == 0


def test_phases_leave_out_ranks_that_did_nothing():
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=3))
    begun = ex.Trace(trace.events.take(trace.events.end <= 1), trace.program)  # only rank 0's first forward
    assert np.array_equal(phases(begun)["rank"].unique(), [0])
