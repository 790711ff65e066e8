"""Faults: said in words, checked before anything starts, made to happen in the kernel, and foretold by costs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, strategies as st
from torch import nn

import explorer as ex
from explorer.errors import CostError, InputError, RunError
from explorer.execute.fault_words import FAULTS, check_faults, parse_fault
from tests.execute.ranks import WIDTH, squared

ACTIONS = st.sampled_from(["0F0", "1B3", "2I1", "10W12"])
COUNTS = st.integers(0, 99)
SECONDS = st.floats(0.001, 100.0)
ANY = st.one_of(
    st.builds(ex.SlowRank, rank=COUNTS, factor=st.floats(1.0, 9.0), from_step=COUNTS),
    st.builds(ex.DelayAction, action=ACTIONS, seconds=SECONDS, step=st.none() | COUNTS),
    st.builds(ex.DelayMessage, action=ACTIONS, seconds=SECONDS, step=st.none() | COUNTS),
    st.builds(ex.FailAction, action=ACTIONS, step=COUNTS),
    st.builds(ex.KillRank, rank=COUNTS, step=COUNTS, action=st.just("") | ACTIONS),
)


@given(ANY)
def test_a_fault_is_read_back_from_its_words(fault):
    assert parse_fault(str(fault)) == fault


def test_words_are_short_where_nothing_is_said():
    assert str(ex.SlowRank(rank=2, factor=3.0)) == "slow rank=2 factor=3"
    assert str(ex.KillRank(rank=1, step=1)) == "kill rank=1 step=1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"a fault is one of slow, delay, delay_message, raise, kill; got ''; try \"slow rank=0 factor=2\""),
        ("slo rank=1", r"a fault is one of .*got 'slo'"),
        ("slow rank=1", r"slow takes rank=… factor=… \[from_step=…\]; factor is missing"),
        ("slow rank=1 factor=2 seconds=1", r"slow takes .*, each once; got 'seconds=1'"),
        ("slow rank=1 rank=2 factor=2", r"each once; got 'rank=2'"),
        ("slow rank=x factor=2", r"rank is a whole number; got 'x'"),
        ("slow rank=1 factor=0.5", r"factor is a number from 1 to 3600; got 0.5; try 2"),
        ("delay action=1B3 seconds=nan", r"seconds is a number from 0 to 3600; got nan"),
        ("delay action=B3 seconds=1", r"an action reads <stage><kind><micro-batch>"),
        ("raise action=1U", r"a fault is of an F, B, I or W of a micro-batch, like 2F3; got '1U'"),
        ("kill rank=-1", r"rank is a whole number of at least 0; got -1"),
    ],
)
def test_words_that_name_no_fault_are_refused_in_a_sentence(text, said):
    with pytest.raises(InputError, match=said) as caught:
        parse_fault(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ex.SlowRank(rank=2, factor=2.0), r"a rank is from 0 to 1; got 2; try 1; in the fault 'slow rank=2 factor=2'"),
        (ex.SlowRank(rank=0, factor=2.0, from_step=3), r"a step is from 0 to 2, for the run has n_steps=3; got from_s"),
        (ex.DelayAction(action="1B4", seconds=1.0), r"it has no 1B4; it has in stage 1 F or B of micro-batches 0 to 3"),
        (ex.DelayAction(action="1W0", seconds=1.0), r"it has no 1W0; it has in stage 1 F or B"),
        (ex.DelayAction(action="7F0", seconds=1.0), r"it has no 7F0; it has stages 0 to 1"),
        (ex.DelayAction(action="1B0", seconds=1.0, step=3), r"a step is from 0 to 2.*got step=3; try 2"),
        (ex.DelayMessage(action="1F0", seconds=1.0), r"a message goes from one rank to another; 1F0 sends none"),
        (ex.DelayMessage(action="0B0", seconds=1.0), r"a message goes from one rank to another; 0B0 sends none"),
        (ex.FailAction(action="0F9"), r"it has no 0F9"),
        (ex.KillRank(rank=0, action="1F0"), r"1F0 is on rank 1, not 0; try rank=1"),
        (ex.KillRank(rank=5), r"a rank is from 0 to 1; got 5"),
    ],
)
def test_what_a_run_cannot_have_is_refused_with_what_it_could(fault, said, program):
    with pytest.raises(InputError, match=said) as caught:
        check_faults([fault], program, 3, "processes")
    assert caught.value.argument == "faults"


@pytest.mark.parametrize("faults", [3, "slow rank=1 factor=2", [ex.SlowRank], ["kill"]])
def test_what_is_no_fault_is_refused_before_anything_starts(faults, program, make_layers, batch):
    with pytest.raises(InputError, match=r"faults is a list of faults; got .*SlowRank\(rank=0, factor=2.0\)"):
        ex.execute(program, make_layers(2), batch, loss=squared, faults=faults)


def test_a_rank_in_the_kernel_is_not_killed_and_why(program, make_layers, batch):
    with pytest.raises(InputError, match=r"in the kernel all ranks are one.*backend=\"processes\", or raise"):
        ex.execute(program, make_layers(2), batch, loss=squared, faults=[ex.KillRank(rank=1)])


# ── foretold ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_costs_with_faults_are_those_of_their_step(program):
    faults = [
        ex.SlowRank(rank=1, factor=3.0, from_step=1),
        ex.DelayAction(action="1B3", seconds=0.5, step=2),
        ex.DelayMessage(action="0F2", seconds=0.25),
    ]
    costs = ex.Costs(time_factor=[2.0, 1.0], delays={"1B3": 1.0})
    first, second, third = (ex.faulty_costs(program, costs, faults, step=step) for step in range(3))
    assert np.asarray(first.time_factor).tolist() == [2.0, 1.0]
    assert np.asarray(second.time_factor).tolist() == [2.0, 3.0]
    assert (second.delays, third.delays) == ({"1B3": 1.0}, {"1B3": 1.5})
    assert third.message_delays == {"0F2": 0.25}


def test_a_run_that_ends_has_no_costs(program):
    with pytest.raises(InputError, match=r"a run that ends has no costs; 'raise action=0F0' ends it"):
        ex.faulty_costs(program, ex.Costs(), [ex.FailAction(action="0F0")])
    with pytest.raises(CostError, match=r"message_delays are action → seconds"):
        ex.Costs(message_delays=[1])


class Steady(nn.Linear):
    """A layer whose forward takes 4 ms at least, on any machine."""

    def forward(self, x):
        time.sleep(0.004)
        return super().forward(x)


@pytest.mark.parametrize(
    "fault",
    [
        ex.SlowRank(rank=1, factor=3.0),
        ex.DelayAction(action="1B0", seconds=0.06, step=1),
        ex.DelayMessage(action="0F0", seconds=0.06, step=1),
    ],
)
def test_a_fault_in_the_kernel_is_measured_marked_and_as_long_as_foretold(fault, program, batch):
    layers = [Steady(WIDTH, WIDTH) for _ in range(2)]
    plain = ex.execute(program, layers, batch, loss=squared, n_steps=2)
    run = ex.execute(program, layers, batch, loss=squared, n_steps=2, faults=[fault])
    assert run.parity
    costs = plain.predicted.costs
    longer = run.trace.step(1).makespan - plain.trace.step(1).makespan
    foretold = ex.simulate(program, ex.faulty_costs(program, costs, [fault], step=1)).makespan
    foretold -= ex.simulate(program, costs).makespan
    assert foretold > 0.02
    assert longer == pytest.approx(foretold, rel=0.6)
    marks = run.trace.step(1).marks
    assert [mark.text for mark in marks] == [str(fault)]
    step = run.trace.step(1).events
    assert step.start.min() <= marks[0].time <= step.end.max()


def test_a_late_message_keeps_its_receiver_idle_and_lengthens_no_action(program, batch):
    layers = [Steady(WIDTH, WIDTH) for _ in range(2)]
    fault = ex.DelayMessage(action="0F0", seconds=0.1)
    events = ex.execute(program, layers, batch, loss=squared, faults=[fault]).trace.events
    first = np.flatnonzero((events.kind == ex.Kind.F) & (events.micro_batch == 0) & (events.stage == 1))[0]
    assert events.start[first] > 0.1
    assert (events.end - events.start)[(events.kind == ex.Kind.F)].max() < 0.1


@pytest.mark.parametrize("action", ["1F2", "1B2", "0F1"])
def test_an_error_in_the_kernel_names_its_place_and_leaves_what_ran(action, program, make_layers, batch):
    with pytest.raises(RunError, match=rf"{action} .*step 1\) failed in layer {action[0]}: InjectedError") as caught:
        ex.execute(
            program, make_layers(2), batch, loss=squared, n_steps=3, faults=[ex.FailAction(action=action, step=1)]
        )
    trace = caught.value.trace
    assert trace.steps == [0, 1]
    assert len(trace.step(0).events) >= program.n_actions
    assert len(trace.step(1).events) < program.n_actions
    assert [mark.text for mark in trace.marks] == [f"raise action={action} step=1"]
    assert ex.timeline(trace).data


def test_weights_are_split_off_and_fail_too(split_program, make_layers, batch):
    with pytest.raises(RunError, match=r"1W1 \(weight gradient of micro-batch 1 in stage 1 on rank 1, step 0\) failed"):
        ex.execute(split_program, make_layers(2), batch, loss=squared, faults=[ex.FailAction(action="1W1")])


def test_every_kind_of_fault_has_a_word_of_its_own():
    assert list(FAULTS) == ["slow", "delay", "delay_message", "raise", "kill"]
