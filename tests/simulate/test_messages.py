"""Sends and receives that meet by a rule: drawn by hand, and both engines agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.core import MESSAGE_RULES, MessageRule, Stream
from explorer.lowering.add import Receives
from tests.schedules.test_family import NAMES, legal
from tests.simulate.test_engines import costs_for

TWO = ["0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1F0 1RECV_F1 1F1"]
THREE = [
    "0F0 0SEND_F0 0F1 0SEND_F1",
    "1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 1SEND_F1",
    "2RECV_F0 2F0 2RECV_F1 2F1",
]


def forwards(orders: list[str]) -> ex.Program:
    return ex.Program.from_orders("by hand", ex.Placement.looped(len(orders)), 2, orders)


def times(trace: ex.Trace, action: str) -> tuple[float, float, float]:
    """Start, end and wait of `action`."""
    kind, stage, micro_batch = ex.Action.parse(action)[:3]
    events = trace.events
    row = (events.kind == kind) & (events.stage == stage) & (events.micro_batch == micro_batch)
    (index,) = np.flatnonzero(row)
    return events.start[index], events.end[index], events.wait[index]


@pytest.mark.parametrize(
    ("rule", "second_forward", "send", "makespan"),
    [
        # rank 0 stands at its first send until 1.5, at its second from 2.5 until rank 1 is there at 4.5
        ("rendezvous", (1.5, 2.5), (4.5, 5.0, 2.0), 8.0),
        ("coalesced", (1.5, 2.5), (4.5, 5.0, 2.0), 8.0),
        # the second output lies in a buffer of rank 1 from 2.5 on
        ("buffered", (1.0, 2.0), (2.0, 2.5, 0.0), 7.5),
        # rank 0 computes on, but rank 1 comes to its second receive only after its first forward
        ("ordered", (1.0, 2.0), (4.5, 5.0, 2.5), 8.0),
        ("two_streams", (1.0, 2.0), (4.5, 5.0, 2.5), 8.0),
    ],
)
def test_a_send_waits_for_its_receive(
    rule: MessageRule, second_forward: tuple[float, float], send: tuple[float, float, float], makespan: float
) -> None:
    """Stage 0 takes 1 s, stage 1 takes 3 s, a message 0.5 s."""
    trace = ex.simulate_events(forwards(TWO), ex.Costs(forward=[1.0, 3.0], latency=0.5), messages=rule)
    assert times(trace, "0F1")[:2] == second_forward
    assert times(trace, "0SEND_F1") == send
    assert trace.makespan == makespan


def test_on_one_stream_a_send_waits_behind_a_receive_that_came_first() -> None:
    """Rank 1 has its output at 5 s, but its stream is held until rank 0 sends the second input at 8 s."""
    costs = ex.Costs(forward=[4.0, 1.0, 1.0])
    held = ex.simulate_events(forwards(THREE), costs, messages="ordered")
    assert times(held, "1SEND_F0") == (8.0, 8.0, 3.0)
    assert times(held, "2F0")[0] == 8.0
    free = ex.simulate_events(forwards(THREE), costs, messages="two_streams")
    assert times(free, "1SEND_F0") == (5.0, 5.0, 0.0)
    assert times(free, "2F0")[0] == 5.0


def test_what_a_message_waits_behind_another_is_told_apart() -> None:
    trace = ex.simulate(forwards(THREE), ex.Costs(forward=[4.0, 1.0, 1.0]), messages="ordered")
    behind = ex.behind_messages(trace)
    late = {str(trace.program.action(int(i))): float(behind[i]) for i in np.flatnonzero(behind)}
    assert late == {"1SEND_F0": 3.0}


def test_a_group_moves_when_all_it_meets_is_posted() -> None:
    """Rank 1 posts the send of its output with the receive of its next input, which rank 0 sends at 8 s."""
    program = ex.group_messages(forwards(THREE))
    costs = ex.Costs(forward=[4.0, 1.0, 1.0])
    together = ex.simulate_events(program, costs, messages="coalesced")
    assert times(together, "1SEND_F0")[:2] == times(together, "1RECV_F1")[:2] == (8.0, 8.0)
    alone = ex.simulate_events(program, costs, messages="rendezvous")
    assert times(alone, "2F0")[0] == 5.0  # its send has gone, though the rank waits for the other
    assert times(alone, "1F1")[0] == 8.0


def test_messages_say_what_they_carry_and_where_to() -> None:
    costs = ex.Costs(latency=0.5, bandwidth=4.0, message_bytes=[6.0, 100.0])
    program = ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=1))
    events = ex.simulate(program, costs, messages="rendezvous").events
    messages = events.take(events.stream != Stream.COMPUTE)
    assert messages.bytes.tolist() == [6, 6, 6, 6]
    assert messages.peer.tolist() == [1, 1, 0, 0]
    np.testing.assert_allclose(messages.end - messages.start, 2.0)  # 0.5 + 6 / 4 seconds


@settings(deadline=None)
@given(
    st.data(),
    st.sampled_from(NAMES),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from(MESSAGE_RULES),
    st.sampled_from(("before_use", "front_loaded")),
)
def test_both_engines_agree_by_every_rule(
    data: st.DataObject, name: str, p: int, m: int, v: int, rule: MessageRule, receives: Receives
) -> None:
    plain = legal(name, p, m, v)
    program = ex.add_messages(plain, receives=receives)
    costs = data.draw(costs_for(program))
    if program.n_actions == plain.n_actions or ex.check_messages(program, rule).hangs:
        return
    fast = ex.simulate(program, costs, messages=rule)
    reference = ex.simulate_events(program, costs, messages=rule)
    for table in ("events", "memory"):
        for column, values in getattr(fast, table).columns().items():
            np.testing.assert_allclose(values, getattr(reference, table).columns()[column], atol=1e-9, err_msg=column)
    assert fast.makespan >= ex.simulate(plain, costs).makespan - 1e-9  # no rule makes anything come sooner


@settings(deadline=None)
@given(st.data(), st.sampled_from(NAMES), st.integers(2, 4), st.integers(1, 6), st.integers(1, 3))
def test_buffered_messages_are_what_the_dependencies_say(
    data: st.DataObject, name: str, p: int, m: int, v: int
) -> None:
    """The plain sweep has sends that end at once and receives that hold their rank: the same slots' times."""
    plain = legal(name, p, m, v)
    program = ex.add_messages(plain)
    if program.n_actions == plain.n_actions:
        return
    costs = data.draw(costs_for(program))
    meeting, swept = ex.simulate(program, costs, messages="buffered").events, ex.simulate(program, costs).events
    compute = meeting.stream == Stream.COMPUTE
    np.testing.assert_allclose(meeting.start[compute], swept.start[: len(meeting)][compute], atol=1e-9)


def test_a_hang_is_refused_with_its_chain() -> None:
    program = ex.add_messages(ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=4, n_chunks=2))
    with pytest.raises(
        ex.ExplorerError, match=r"ordered stream.*0SEND_F1 waits for 1RECV_F1 of rank 1 → rank 1"
    ) as caught:
        ex.simulate(program, messages="ordered")
    assert [link[0] for link in caught.value.chain] == [0, 1]  # type: ignore[attr-defined]


def test_a_rule_needs_messages_and_a_name() -> None:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    with pytest.raises(ex.ExplorerError, match=r"this program has none; add them with explorer.add_messages"):
        ex.simulate(program, messages="ordered")
    with pytest.raises(ex.ExplorerError, match=r"rendezvous, buffered, ordered.*got 'nccl'; try"):
        ex.simulate(program, messages="nccl")  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["rendezvous", "buffered", "ordered", "two_streams", "coalesced"])
def test_a_program_that_needs_no_messages_runs_under_every_rule(rule):
    for name, makespan in (("1f1b", 12), ("forward_only", 4)):
        program = ex.add_messages(ex.schedule(name, n_ranks=1, n_micro_batches=4))
        assert ex.simulate(program, messages=rule).makespan == makespan
        assert ex.simulate_events(program, messages=rule).makespan == makespan
        assert not ex.check_messages(program, rule).hangs
