"""Orders that were reported or published, with what they must give; each names its source."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.core import MessageRule

SEND_F, RECV_F = ex.Kind.SEND_F, ex.Kind.RECV_F


def interleaved(n_ranks: int, n_micro_batches: int) -> ex.Program:
    return ex.schedule("interleaved_1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=2)


def crossing() -> ex.Program:
    """Two ranks with two chunks; each sends what the other receives only later (pytorch/pytorch#172668)."""
    orders = ["0SEND_F2 2RECV_B0", "3SEND_B0 1RECV_F2"]
    return ex.Program.from_orders("crossing", ex.Placement.looped(2, 2), 3, orders)


def skipping() -> ex.Program:
    """Rank 0 sends to 1 and, past it, to 2 in one group (pytorch/PiPPy#969)."""
    first = ex.Overlap([ex.Action(SEND_F, 0, 0, 0, 1), ex.Action(SEND_F, 0, 0, 0, 2)])
    middle = [ex.Action(RECV_F, 1, 0, 0, 0), ex.Action(SEND_F, 1, 0, 0, 2)]
    last = ex.Overlap([ex.Action(RECV_F, 2, 0, 0, 0), ex.Action(RECV_F, 2, 0, 0, 1)])
    return ex.Program.from_orders("skipping", ex.Placement.looped(3), 1, [[first], middle, [last]])


def test_forward_and_backward_messages_that_cross_hang() -> None:
    """Case p2p-cycle-cross-direction, from pytorch/pytorch#172668."""
    report = ex.check_messages(crossing(), "rendezvous")
    assert report.hangs
    assert report.chain == ((0, 0, "0SEND_F2"), (1, 0, "3SEND_B0"))
    assert report.awaited == ("1RECV_F2", "2RECV_B0")
    assert report.ranks == (0, 1, 0)
    assert not ex.check_messages(crossing(), "buffered").hangs
    assert report.cure is not None
    assert report.cure.text == "rank 1 posts 1RECV_F2 before 3SEND_B0"
    assert str(report.cure.program).splitlines()[1] == "rank 1: 1RECV_F2 3SEND_B0"


def test_groups_past_a_rank_hang_and_one_group_per_peer_does_not() -> None:
    """Case skip-group-cycle-3, from pytorch/PiPPy#969."""
    report = ex.check_messages(skipping(), "coalesced")
    assert report.hangs
    assert report.ranks == (0, 2, 1, 0)
    assert report.cure is not None
    assert report.cure.kind == "group_per_peer"
    assert not ex.check_messages(ex.one_group_per_peer(skipping()), "coalesced").hangs
    assert not ex.check_messages(skipping(), "rendezvous").hangs  # each message of a group by itself


def test_receives_just_before_use_wait_in_a_ring_of_four() -> None:
    """Case deferred-recv-ring-4, from pytorch/pytorch#188833."""
    report = ex.check_messages(ex.add_messages(interleaved(4, 8)), "ordered")
    assert [(rank, action) for rank, _, action in report.chain] == [
        (0, "0SEND_F3"),
        (1, "1SEND_F2"),
        (2, "2SEND_F1"),
        (3, "3SEND_F0"),
    ]
    assert report.ranks == (0, 1, 2, 3, 0)
    assert {"second_stream", "buffer"} <= {cure.kind for cure in report.cures}
    for rule in ("two_streams", "buffered"):
        assert not ex.check_messages(ex.add_messages(interleaved(4, 8)), rule).hangs


@pytest.mark.parametrize(
    ("n_ranks", "n_micro_batches", "free", "behind"), [(8, 16, 58.5, 86.0), (4, 8, 28.5, 35.0), (2, 4, 13.5, 13.5)]
)
def test_messages_wait_behind_front_loaded_receives(
    n_ranks: int, n_micro_batches: int, free: float, behind: float
) -> None:
    """Case hol-blocking, from pytorch/pytorch#188833: a model of one ordered stream, not a measured run."""
    program, costs = interleaved(n_ranks, n_micro_batches), ex.Costs(forward=0.5, backward=1.0)
    placed = ex.add_messages(program, receives="front_loaded")
    assert ex.simulate(program, costs).makespan == free
    assert ex.simulate(placed, costs, messages="ordered").makespan == behind
    assert ex.simulate_events(placed, costs, messages="ordered").makespan == behind
    assert ex.simulate(placed, costs, messages="two_streams").makespan == free


def test_torch_1f1b_order_is_refused_for_what_its_last_rank_lacks() -> None:
    """Case torch-1f1b-ir-invalid, from pytorch/pytorch#155935: F0 missing and F8 invented on the last rank."""
    good = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    orders: list[list[ex.Action | ex.Overlap]] = [good.order(rank) for rank in range(3)]
    last = "3F1 3B0 3F2 3B1 3F3 3B2 3F4 3B3 3F5 3B4 3F6 3B5 3F7 3B6 3F8 3B7"
    bad = ex.Program.from_orders("torch", good.placement, 8, [*orders, last])
    with pytest.raises(ex.ExplorerError, match=r"3F8.*3F0 is missing"):
        ex.add_messages(bad)
    ex.add_messages(good)


# torch.distributed.pipelining 2.13.0, get_schedule_ops(…, with_comms=True), without what moves parameters
TORCH_TWO_RANKS = """
    0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 2F0 2SEND_F0 2F1 2SEND_F1 2RECV_B0 0F2 0SEND_F2 2B0 2SEND_B0
        2RECV_B1 0F3 0SEND_F3 2RECV_F2 2B1 2SEND_B1 0RECV_B0 2F2 2SEND_F2 2RECV_F3 0B0 0RECV_B1 2F3 2SEND_F3 0B1
        2RECV_B2 2B2 2SEND_B2 2RECV_B3 2B3 2SEND_B3 0RECV_B2 0B2 0RECV_B3 0B3
        |
        1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3RECV_F1 3B0 3SEND_B0 1RECV_F2 3F1 1RECV_B0 3B1
        3SEND_B1 1RECV_F3 1F2 1SEND_F2 1RECV_B1 1B0 1SEND_B0 3RECV_F2 1F3 1SEND_F3 1B1 1SEND_B1 3RECV_F3 3F2 3B2
        3SEND_B2 1RECV_B2 3F3 3B3 3SEND_B3 1RECV_B3 1B2 1SEND_B2 1B3 1SEND_B3
"""
# of the last of four ranks: where a stage's gradients are reduced, the receives of others come in between
TORCH_LAST_RANK = """
    3RECV_F0 3F0 3SEND_F0 3RECV_F1 3F1 3SEND_F1 3RECV_F2 3F2 3SEND_F2 3RECV_F3 3F3 3SEND_F3 7RECV_F0 7F0 7RECV_F1
    7B0 7SEND_B0 7RECV_F2 7F1 7B1 7SEND_B1 7RECV_F3 7F2 7B2 7SEND_B2 3RECV_F4 7F3 3RECV_B0 7B3 7SEND_B3 3RECV_F5 3F4
    3SEND_F4 3RECV_B1 3B0 3SEND_B0 3RECV_F6 3F5 3SEND_F5 3RECV_B2 3B1 3SEND_B1 3RECV_F7 3F6 3SEND_F6 3RECV_B3 3B2
    3SEND_B2 7RECV_F4 3F7 3SEND_F7 3B3 3SEND_B3 7RECV_F5 7F4 7B4 7SEND_B4 7RECV_F6 7F5 7B5 7SEND_B5 7RECV_F7 7F6
    3RECV_B4 7B6 7SEND_B6 7F7 3RECV_B5 7B7 7SEND_B7 3RECV_B6 3RECV_B7 3B4 3SEND_B4 3B5 3SEND_B5 3B6 3SEND_B6 3B7
    3SEND_B7
"""


def test_front_loaded_receives_stand_where_torch_puts_them() -> None:
    placed = ex.add_messages(interleaved(2, 4), receives="front_loaded")
    ranks = TORCH_TWO_RANKS.split("|")
    assert [" ".join(map(str, placed.order(rank))) for rank in (0, 1)] == [" ".join(text.split()) for text in ranks]
    placed = ex.add_messages(interleaved(4, 8), receives="front_loaded")
    assert " ".join(map(str, placed.order(3))) == " ".join(TORCH_LAST_RANK.split())


RULES: tuple[MessageRule, ...] = ("rendezvous", "buffered", "ordered", "coalesced", "two_streams")


@pytest.mark.parametrize("rule", RULES)
def test_both_receiving_first_hangs_only_where_a_receive_holds_its_rank_or_stream(rule: MessageRule) -> None:
    """The classic of message passing, by hand: each waits for what the other sends only afterwards."""
    orders = ["2RECV_B0 0SEND_F2", "1RECV_F2 3SEND_B0"]
    program = ex.Program.from_orders("receive first", ex.Placement.looped(2, 2), 3, orders)
    assert ex.check_messages(program, rule).hangs == (rule != "two_streams")
