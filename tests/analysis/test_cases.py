"""What users reported, as far as a trace alone answers it."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex


def program(**options):
    return ex.schedule("1f1b", n_ranks=4, n_micro_batches=8, **options)


def test_a_straggler_is_named_with_what_fixing_it_gains():
    # traceopt-ai/traceml#252: rank 2 takes 1.5 times as long; times with waits in them are nearly equal on all ranks
    trace = ex.simulate(program(), ex.Costs(time_factor=[1, 1, 1.5, 1]))
    assert trace.makespan == 43.5
    assert trace.idle_per_rank.tolist() == [19.5, 19.5, 7.5, 19.5]
    best = ex.gains(trace).iloc[0]
    assert (best.cause, best["rank"], best.promise) == ("straggler", 2, "exact")
    assert best.makespan == 33
    assert 100 * best.share == pytest.approx(24.14, abs=0.005)


def test_a_straggler_is_named_from_the_trace_alone():
    # the same without knowing what it was simulated with: nobody waits for rank 2 but the others, and they name it
    trace = replace(ex.simulate(program(), ex.Costs(time_factor=[1, 1, 1.5, 1])), costs=None)
    rows = ex.idle_causes(trace)
    named = rows[rows.cause.isin(["imbalance", "straggler", "hiccup"])]
    assert set(named.at_rank) == {2}
    assert named.groupby("rank").seconds.sum().to_dict() == pytest.approx({0: 9.0, 1: 9.0, 3: 9.0})
    best = ex.gains(trace).iloc[0]
    assert (best["rank"], best.stage, best.makespan) == (2, 2, 33)


def test_a_hiccup_without_slack_is_passed_on_in_full():
    # AI-Infra-Team/awesome-papers#154: 3 s more for F of micro-batch 4 on stage 1
    still, late = ex.simulate(program()), ex.simulate(program(), ex.Costs(delays={"1F4": 3.0}))
    events = still.events
    row = np.flatnonzero((events.kind == ex.Kind.F) & (events.stage == 1) & (events.micro_batch == 4))[0]
    assert ex.slack(still)[row] == 0
    assert late.makespan == 36 == still.makespan + 3
    best = ex.gains(late).iloc[0]
    assert (best.cause, best.stage, best.micro_batch, best.gain) == ("hiccup", 1, 4, 3)


def test_a_deeper_warm_up_hides_latency_and_the_causes_show_which():
    # AI-Infra-Team/awesome-papers#87: hops of 0.25 s; 37 s with the usual warm-up, 34.5 s with twice that
    costs = ex.Costs(latency=0.25)
    usual, deep = ex.simulate(program(), costs), ex.simulate(program(warm_up=2), costs)
    assert (usual.makespan, deep.makespan) == (37, 34.5)
    assert usual.peak_in_flight.tolist() == [4, 3, 2, 1]
    assert deep.peak_in_flight.tolist() == [7, 5, 3, 1]
    # on every rank all beyond the 9 s bubble is latency: 2(P−1) hops remain of 16
    assert np.allclose(ex.idle_summary(usual).latency, 4.0)
    assert np.allclose(ex.idle_summary(deep).latency, 1.5)
