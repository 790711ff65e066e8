"""The critical path and slack against pipelines that can be drawn."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex


def read(path):
    """A path as text: F0.1 is stage 0's forward of micro-batch 1, → a message, … a gap."""
    marks = {"transfer": "→", "gap": "…", "queue": "q", "wait": "w"}
    rows = zip(path.what, path.kind, path.stage, path.micro_batch, strict=True)
    return " ".join(marks.get(what, f"{kind}{stage}.{micro_batch}") for what, kind, stage, micro_batch in rows)


def slack_of(trace, text):
    """Slack of the action that reads `text`."""
    action, events = ex.Action.parse(text), trace.events
    same = (events.kind == action.kind) & (events.stage == action.stage) & (events.micro_batch == action.micro_batch)
    return ex.slack(trace)[np.flatnonzero(same & (events.stream == 0))[0]]


def test_the_path_of_gpipe_goes_through_the_slow_stage():
    # stage 1 takes 2 and 4, the others 1 and 2
    #     rank 0  F0 F1                     B1 ..    B0
    #     rank 1     F0 F0 F1 F1   B1 B1 B1 B1 B0 B0 B0 B0
    #     rank 2           F0 .. F1 B1 B1 ..
    program = ex.schedule("gpipe", n_ranks=3, n_micro_batches=2)
    trace = ex.simulate(program, ex.Costs(forward=[1, 2, 1]))
    path = ex.critical_path(trace)
    assert path.seconds.sum() == trace.makespan == 4 + 8 + (2 + 4)  # Σ(F+B) + (M−1)(max F + max B)
    assert (path.stage == 1).sum() == 4
    assert list(path.columns) == [
        *("step", "rank", "start", "end", "seconds", "what", "kind", "stage", "micro_batch", "segment", "peer"),
    ]


def test_messages_are_on_the_path_with_both_their_ends():
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=1), ex.Costs(latency=0.5))
    path = ex.critical_path(trace)
    assert read(path) == "F0.0 → F1.0 B1.0 → B0.0"
    sent = path[path.what == "transfer"]
    assert sent[["rank", "peer", "start", "end"]].to_numpy().tolist() == [[0, 1, 1.0, 1.5], [1, 0, 4.5, 5.0]]


def test_a_wait_that_the_program_adds_is_on_the_path():
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2).with_waits(("1F0", "0F1", 1.0))
    path = ex.critical_path(ex.simulate(program))
    assert read(path) == "F0.0 F1.0 w F0.1 F1.1"


def test_a_message_behind_another_is_on_the_path_as_a_queue():
    costs = ex.Costs(bandwidth=1, message_bytes=3, links=np.zeros((2, 2), int), sharing="queue")
    path = ex.critical_path(ex.simulate(ex.schedule("forward_only", n_ranks=2, n_micro_batches=2), costs))
    assert read(path) == "F0.0 F0.1 q → F1.1"
    assert path.seconds.tolist() == [1, 1, 2, 3, 1]


def test_seconds_of_the_host_are_a_gap():
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=1))
    late = np.where(trace.events.start >= 4, 0.5, 0.0)
    events = replace(trace.events, start=trace.events.start + late, end=trace.events.end + late)
    path = ex.critical_path(ex.Trace(events, trace.program, costs=trace.costs))  # which say that messages take no time
    assert read(path) == "F0.0 F1.0 B1.0 … B0.0"
    assert path.seconds[3] == 0.5


def test_what_made_room_by_starting_is_passed_through():
    # stage 0 may begin F2 once F1 has begun on stage 1, at 4; then follow F2 there, at 7, and the path is stage 1's
    program = replace(ex.schedule("forward_only", n_ranks=2, n_micro_batches=3), capacities=np.array([0]))
    trace = ex.simulate(program, ex.Costs(forward=[3, 1]))
    assert ex.critical_path(trace).seconds.sum() == trace.makespan


def test_every_step_has_a_path_of_its_own():
    one = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    later = {**one.events.columns(), "step": 1, "start": one.events.start + 100, "end": one.events.end + 100}
    path = ex.critical_path(ex.Trace(ex.Events.concatenate(one.events, ex.Events.of(**later)), one.program))
    assert path.groupby("step").seconds.sum().tolist() == [9, 9]
    assert path.query("step == 1").start.iloc[0] == 100


def test_an_empty_trace_has_no_path():
    trace = ex.Trace(ex.Events.of(step=()), ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    assert len(ex.critical_path(trace)) == 0
    assert len(ex.slack(trace)) == 0


def test_a_step_in_which_no_time_passes_has_no_path():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    assert ex.critical_path(ex.simulate(program, ex.Costs(forward=0, backward=0))).empty


def test_slack_is_what_an_action_may_be_later():
    # F = 1, B = 2:   rank 0  F0 F1 .  .  .  .  .  B0 B0 B1 B1      rank 0's second forward is wanted at 3, not 2,
    #                 rank 1  .  F0 F1 B0 B0 B1 B1                  where stage 1 takes twice as long: F1 starts at 3
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2), ex.Costs(forward=[1, 2]))
    assert slack_of(trace, "0F0") == 0
    assert slack_of(trace, "0F1") == 1
    assert slack_of(trace, "1B1") == 0


def test_messages_have_the_slack_of_their_arrival():
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2), ex.Costs(forward=[1, 3], latency=0.5))
    # F0 is there at 1.5, and F1 at 2.5 where it is wanted at 4.5; a gradient's message is waited for
    sent = trace.events.stream == 1
    assert ex.slack(trace)[sent].tolist()[:2] == [0, 2]


def test_both_ends_of_an_explicit_message_have_its_slack():
    program = ex.add_messages(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2))
    trace = ex.simulate(program, ex.Costs(latency=0.5), messages="two_streams")
    events, late = trace.events, ex.slack(trace)
    assert np.isfinite(late).all()
    for back, stage in ((0, 1), (1, 0)):
        sent = (events.stream == 1) & (events.kind == (ex.Kind.SEND_B if back else ex.Kind.SEND_F))
        received = (events.stream == 2) & (events.stage == stage)
        assert sorted(late[sent]) == sorted(late[received])


def test_the_optimizer_has_no_slack_to_tell():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    trace = ex.simulate(program)
    update = ex.Events.of(rank=[0, 1], stage=[0, 1], kind=ex.Kind.U, start=9.0, end=10.0)
    late = ex.slack(ex.Trace(ex.Events.concatenate(trace.events, update), program))
    assert np.isnan(late[-2:]).all()
    assert late[:-2] == pytest.approx(ex.slack(trace))
