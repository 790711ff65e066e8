"""Hangs are found, named and cured; every cure is tried here once more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.core import MESSAGE_RULES, MessageRule
from tests.schedules.test_family import NAMES, legal


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(2, 4), st.integers(1, 6), st.integers(1, 3), st.sampled_from(MESSAGE_RULES))
def test_every_cure_lets_the_program_finish(name: str, p: int, m: int, v: int, rule: MessageRule) -> None:
    plain = legal(name, p, m, v)
    program = ex.add_messages(plain)
    if program.n_actions == plain.n_actions:
        return
    report = ex.check_messages(program, rule)
    assert report.hangs == bool(report.chain) == (report.cure is not None)  # complete programs can all be cured
    for cure in report.cures:
        assert cure.program.n_actions == program.n_actions
        if not cure.buffered:
            ex.simulate_events(cure.program, messages=cure.messages)


def test_the_sentence_names_rule_chain_and_cure() -> None:
    program = ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    assert str(ex.check_messages(program, "ordered")) == (
        "1f1b hangs on one ordered stream a rank: rank 0 slot 3 0SEND_F1 waits for 1RECV_F1 of rank 1 → "
        "rank 1 slot 3 1SEND_B0 waits for 0RECV_B0 of rank 0; cure, checked: rank 1 posts 1RECV_F1 before 1SEND_B0"
    )
    assert str(ex.check_messages(program, "buffered")) == "1f1b does not hang even with a buffer for every send"


def test_a_buffer_cures_just_the_send_that_needs_it() -> None:
    program = ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    (buffer,) = [cure for cure in ex.check_messages(program, "rendezvous").cures if cure.kind == "buffer"]
    assert buffer.buffered == ("0SEND_F1",)
    assert buffer.text == "give a buffer to 0SEND_F1"


def test_posting_neighbouring_messages_together_cures_1f1b() -> None:
    """As frameworks do that send the activation and receive the gradient in one call."""
    program = ex.add_messages(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8))
    assert ex.check_messages(program, "rendezvous").hangs
    for rule in ("rendezvous", "coalesced"):
        assert not ex.check_messages(ex.group_messages(program), rule).hangs


def test_a_large_program_is_cured_too() -> None:
    program = ex.add_messages(ex.schedule("1f1b", n_ranks=16, n_micro_batches=512))
    report = ex.check_messages(program, "ordered")
    assert report.hangs
    assert report.cure is not None
    assert report.cure.text.startswith("place each receive as its sender's turn comes")
    assert not ex.check_messages(report.cure.program, "ordered").hangs


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (["0SEND_F0", ""], r"every message has a send and a receive; 0SEND_F0 has no receive; add its other end"),
        (["", "1RECV_F0"], r"1RECV_F0 has no send.*rank 1, slot 0: \[1RECV_F0\]"),
        (["", "1SEND_F0"], r"1SEND_F0 goes nowhere"),
        (["0F0", "1F0"], r"the program has none; add them with add_messages"),
        (["0F0 0SEND_F0", "1RECV_F0"], r"1F0 is missing from rank 1"),
        (["0SEND_F0", "1RECV_F0 0RECV_B0"], r"0RECV_B0 has no send"),
        (["0SEND_F4", "1RECV_F4"], r"micro-batches 0–0; got 0SEND_F4, which is outside"),
        (["5SEND_F0", "1RECV_F0"], r"stages 0–1.*got 5SEND_F0, which is outside"),
    ],
)
def test_a_program_that_cannot_be_checked_says_why(orders: list[str], message: str) -> None:
    program = ex.Program.from_orders("short", ex.Placement.looped(2), 1, orders)
    with pytest.raises(ex.ExplorerError, match=message):
        ex.check_messages(program)


def test_messages_and_computation_do_not_share_a_slot() -> None:
    both = ex.Overlap([ex.Action(ex.Kind.F, 0, 0), ex.Action(ex.Kind.SEND_F, 0, 0)])
    program = ex.Program.from_orders("mixed", ex.Placement.looped(2), 1, [[both], "1RECV_F0 1F0"])
    with pytest.raises(ex.ExplorerError, match=r"not both; got \(0F0;0SEND_F0\); give its messages their own slot"):
        ex.check_messages(program)


def test_no_program_and_no_rule_are_refused_by_name() -> None:
    with pytest.raises(ex.ExplorerError, match="this needs a Program; got str"):
        ex.check_messages("1f1b")  # type: ignore[arg-type]
    with pytest.raises(ex.ExplorerError, match=r"got 'mpi'; try 'rendezvous'"):
        ex.check_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=1), "mpi")  # type: ignore[arg-type]
    with pytest.raises(ex.ExplorerError, match="this needs a Program; got int"):
        ex.group_messages(3)  # type: ignore[arg-type]
