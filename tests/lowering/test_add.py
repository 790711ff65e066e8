"""Sends and receives stand where they belong, and change nothing while they are free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.core import MESSAGE_KINDS, MESSAGE_RULES, MessageRule, Waits
from explorer.lowering.add import Receives
from tests.schedules.test_family import NAMES, legal

PLACES: tuple[Receives, ...] = ("before_use", "front_loaded")


def test_each_send_follows_its_action_and_each_receive_precedes_its_use() -> None:
    placed = ex.add_messages(ex.schedule("gpipe", n_ranks=3, n_micro_batches=1))
    assert str(placed) == (
        "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
        "rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
        "rank 2: 2RECV_F0 2F0 2B0 2SEND_B0"
    )
    assert placed.peer[placed.kind == ex.Kind.RECV_B].tolist() == [1, 2]


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(1, 8), st.integers(1, 3), st.sampled_from(PLACES))
def test_the_computation_stays_in_order_and_every_message_has_two_ends(
    name: str, p: int, m: int, v: int, receives: Receives
) -> None:
    program = legal(name, p, m, v)
    placed = ex.add_messages(program, receives=receives)
    compute = ~np.isin(placed.kind, MESSAGE_KINDS)
    for column in ("kind", "stage", "micro_batch", "segment"):
        np.testing.assert_array_equal(getattr(placed, column)[compute], getattr(program, column))
    counts = np.bincount(placed.kind, minlength=len(ex.Kind))
    assert counts[ex.Kind.SEND_F] == counts[ex.Kind.RECV_F]
    assert counts[ex.Kind.SEND_B] == counts[ex.Kind.RECV_B]


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(1, 8), st.integers(1, 3))
def test_front_loaded_receives_hang_by_no_rule(name: str, p: int, m: int, v: int) -> None:
    """All ranks then share one order of messages, so none can wait in a circle."""
    program = legal(name, p, m, v)
    placed = ex.add_messages(program, receives="front_loaded")
    if placed.n_actions > program.n_actions:
        assert not any(ex.check_messages(placed, rule).hangs for rule in MESSAGE_RULES)


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 5), st.integers(1, 8), st.integers(1, 3), st.floats(0, 3))
def test_buffered_receives_before_use_take_as_long_as_the_dependencies_alone(
    name: str, p: int, m: int, v: int, latency: float
) -> None:
    program, costs = legal(name, p, m, v), ex.Costs(latency=latency)
    placed = ex.add_messages(program)
    rule: MessageRule | None = "buffered" if placed.n_actions > program.n_actions else None
    assert ex.simulate(placed, costs, messages=rule).makespan == pytest.approx(ex.simulate(program, costs).makespan)


def test_further_waits_go_on_holding_their_actions_apart() -> None:
    orders = ["0F0 0F1", "1F0 1F1"]
    waits = Waits(np.array([2]), np.array([1]), np.array([5.0]))  # 1F0, then five seconds, then 0F1
    program = ex.Program.from_orders("hazard", ex.Placement.looped(2), 2, orders, waits=waits)
    placed = ex.add_messages(program)
    assert placed.waits is not None
    assert [str(placed.action(int(i))) for i in (placed.waits.after[0], placed.waits.before[0])] == ["1F0", "0F1"]
    assert ex.simulate(placed).makespan == ex.simulate(program).makespan == 9.0


def test_messages_are_not_added_twice_nor_in_an_unknown_place() -> None:
    program = ex.schedule("gpipe", n_ranks=2, n_micro_batches=1)
    with pytest.raises(ex.ExplorerError, match=r"this one has some; begin without them"):
        ex.add_messages(ex.add_messages(program))
    with pytest.raises(ex.ExplorerError, match=r"before_use or front_loaded; got 'early'; try") as caught:
        ex.add_messages(program, receives="early")  # type: ignore[arg-type]
    assert caught.value.argument == "receives"  # type: ignore[attr-defined]
