"""Marks and delays of messages: what a fault leaves in a trace and in costs."""

from __future__ import annotations

import dataclasses

import pytest

import explorer as ex
from explorer.core import Mark
from explorer.errors import CostError, InputError
from explorer.io.document import from_document, to_document

# 2 ranks, 1 micro-batch: F of 1, B of 2, so F0 at 0–1, 1F0 at 1–2, 1B0 at 2–4, 0B0 at 4–6
PROGRAM = ex.schedule("gpipe", n_ranks=2, n_micro_batches=1)


@pytest.mark.parametrize("simulate", [ex.simulate, ex.simulate_events])
@pytest.mark.parametrize(("action", "starts"), [("0F0", [0, 1.5, 2.5, 4.5]), ("1B0", [0, 1, 2, 4.5])])
def test_a_message_that_is_late_holds_up_who_waits_for_it_alone(simulate, action, starts):
    events = simulate(PROGRAM, ex.Costs(message_delays={action: 0.5})).events
    assert sorted(events.start[events.kind <= ex.Kind.B].tolist()) == starts


def test_what_stays_on_its_rank_is_no_message_and_is_never_late():
    assert ex.simulate(PROGRAM, ex.Costs(message_delays={"1F0": 0.5})).makespan == 6.0


@pytest.mark.parametrize("delays", [{"0F0": -1.0}, {"nonsense": 1.0}, 3])
def test_delays_of_messages_are_checked_as_those_of_actions_are(delays):
    with pytest.raises(CostError, match="message_delays") as caught:
        ex.Costs(message_delays=delays)
    assert caught.value.argument == "message_delays"


def test_marks_are_of_a_step_and_travel_in_a_file():
    trace = ex.simulate(PROGRAM)
    marks = (Mark(0, 1, 2.5, "slow rank=1 factor=2"), Mark(3, 0, 9.0, "kill rank=0"))
    trace = dataclasses.replace(trace, marks=marks)
    assert trace.step(0).marks == marks[:1]
    assert from_document(to_document(trace)).marks == marks
    older = to_document(trace)
    del older["marks"]
    assert from_document(older).marks == ()


@pytest.mark.parametrize("row", [[0, 2, 0.0, "x"], [-1, 0, 0.0, "x"], [0, 0, None, "x"], [0, 0, 0.0, 7], [0], 3])
def test_marks_of_a_file_are_checked(row):
    document = {**to_document(ex.simulate(PROGRAM)), "marks": [row]}
    with pytest.raises(InputError, match="mark"):
        from_document(document)


@pytest.mark.parametrize("action", ["0F0", "1B0"])
def test_a_late_message_is_late_where_sends_and_receives_are_written_out_too(action):
    program = ex.add_messages(PROGRAM)
    assert ex.simulate(program, ex.Costs(message_delays={action: 0.5}), messages="buffered").makespan == 6.5
