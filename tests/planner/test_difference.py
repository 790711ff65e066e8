"""The parts of a prediction's error: each found where it was put in, and always summing to the whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.schedules import REGISTRY

PARTS = ("durations", "transfers", "order", "host")


def program(name="1f1b", n_ranks=4, n_micro_batches=8):
    return ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches)


def parts(difference):
    return {name: pytest.approx(getattr(difference, name), abs=1e-9) for name in PARTS}


def test_slower_backwards_are_durations_and_latency_is_transfers():
    # (M + P − 1) · 0.5 more, then (2(P − 1) + 2⌊(M − 1)(P − 1)/P⌋) · 0.25
    found = ex.explain_difference(ex.simulate(program()), ex.simulate(program(), ex.Costs(backward=2.5, latency=0.25)))
    assert parts(found) == {"durations": 5.5, "transfers": 4.0, "order": 0, "host": 0}
    assert (found.predicted, found.measured, found.total) == (33, 42.5, 9.5)
    assert found.ratio == pytest.approx(33 / 42.5)


def test_another_order_of_the_same_actions_is_order():
    # GPipe hides latency that 1F1B pays at each turn: (M+P−1)·3 + 2(P−1)c against 1F1B's + 16c
    costs = ex.Costs(latency=0.25)
    found = ex.explain_difference(ex.simulate(program("gpipe"), costs), ex.simulate(program(), costs))
    assert parts(found) == {"durations": 0, "transfers": 0, "order": 2.5, "host": 0}


def late(trace, seconds):
    """The same trace with every action of every rank pushed back once more, in order of time: a slow host."""
    events = trace.events
    shift = seconds * (1 + np.argsort(np.argsort(events.start, kind="stable")))
    return replace(trace, events=replace(events, start=events.start + shift, end=events.end + shift))


def test_gaps_that_nothing_explains_are_host():
    # naive: one action at a time, 2 · 2 · 1 of them; a gap before each but the first
    planned = ex.simulate(program("naive", 2, 1))
    found = ex.explain_difference(planned, late(planned, 0.5))
    assert parts(found) == {"durations": 0, "transfers": 0, "order": 0, "host": 1.5}


def test_a_message_that_stands_behind_another_is_transfers():
    placed = ex.add_messages(program(), receives="front_loaded")
    costs = ex.Costs(latency=0.25)
    happened = ex.simulate(placed, costs, messages="ordered")
    found = ex.explain_difference(ex.simulate(program(), costs), happened)
    assert found.measured == pytest.approx(happened.makespan)
    assert found.transfers == pytest.approx(happened.makespan - 37)


def slots(name):
    """What each rank does at once, in no order: where this is equal, only the order can differ."""
    one = program(name)
    parts = [one.slot(k) for k in range(one.n_slots)]
    together = [frozenset(map(str, part if isinstance(part, ex.Overlap) else [part])) for part in parts]
    return {(int(rank), actions) for rank, actions in zip(one.rank_of_slot, together, strict=True)}


@given(
    st.sampled_from(sorted(REGISTRY)),
    st.sampled_from(sorted(REGISTRY)),
    st.integers(0, 99),
    st.floats(0, 2),
    st.floats(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_always_sum_to_the_difference(one, other, seed, latency, factor):
    planned = ex.simulate(program(one), ex.Costs(jitter=0.2, seed=seed, latency=latency))
    costs = ex.Costs(jitter=0.3, seed=seed + 1, fixed=0.1, latency=factor, time_factor=[1, 1 + factor, 1, 2])
    happened = late(ex.simulate(program(other), costs), 0.01)
    if slots(one) != slots(other):
        with pytest.raises(ex.ExplorerError, match="the same actions on the same ranks"):
            ex.explain_difference(planned, happened)
        return
    found = ex.explain_difference(planned, happened)
    assert found.predicted == pytest.approx(planned.makespan, abs=1e-9)
    assert found.measured == pytest.approx(happened.makespan, abs=1e-9)
    assert sum(getattr(found, name) for name in PARTS) == pytest.approx(found.total, abs=1e-9)
    if one == other:
        assert found.order == 0


def test_clocks_that_err_change_no_sum():
    planned = ex.simulate(program())
    events = planned.events
    skewed = replace(events, start=events.start - 0.3 * events.rank, end=events.end - 0.3 * events.rank)
    found = ex.explain_difference(planned, replace(planned, events=skewed))
    assert sum(getattr(found, name) for name in PARTS) == pytest.approx(found.total, abs=1e-9)
    assert found.measured == pytest.approx(replace(planned, events=skewed).makespan)


def test_a_difference_becomes_a_frame():
    frame = ex.explain_difference(ex.simulate(program()), ex.simulate(program(), ex.Costs(backward=2.5))).to_frame()
    assert frame["part"].tolist() == list(PARTS)
    assert frame["seconds"].sum() == pytest.approx(5.5)
    assert frame["share"].iloc[0] == pytest.approx(5.5 / 33)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: program("zb_h1"), "0B0, which only the first has"),
        (lambda: program("1f1b", 4, 4), "4 ranks, 4 stages, 8 micro-batches, 1 segments and 4 ranks, 4 stages, 4 mic"),
        (lambda: program("chimera"), "the same actions on other ranks"),
    ],
)
def test_programs_of_other_actions_are_refused_by_what_differs(other, message):
    with pytest.raises(ex.ExplorerError, match=message):
        ex.explain_difference(ex.simulate(program()), ex.simulate(other()))


def test_a_step_that_is_not_whole_is_refused():
    trace = ex.simulate(program())
    half = replace(trace, events=trace.events.take(np.arange(10)))
    with pytest.raises(ex.ExplorerError, match="got 10 of the 64 actions"):
        ex.explain_difference(trace, half)


@pytest.mark.parametrize("turn", [1, -1])
def test_gradient_reductions_that_one_of_them_has_are_left_out_of_both_and_told(turn):
    # as torch's runs have them: once a stage, after its last backward
    bare = program("1f1b", 2, 2)
    lines = [[str(bare.slot(k)) for k in np.flatnonzero(bare.rank_of_slot == rank)] for rank in range(2)]
    reduced = ex.Program.from_orders("recorded", bare.placement, 2, [[*line, f"{n}G"] for n, line in enumerate(lines)])
    pair = [ex.simulate(bare), ex.simulate(reduced, ex.Costs(forward=2.0, backward=2.0))][::turn]
    found = ex.explain_difference(*pair)
    # (M + P − 1) · 3 and, with forwards that take one more, (M + P − 1) · 4
    assert [found.predicted, found.measured] == [9, 12][::turn]
    assert found.durations == 3 * turn
    assert found.left_out == (ex.Kind.G,)
    assert ex.explain_difference(pair[0], pair[0]).left_out == ()
