"""Messages that share links: against arithmetic by hand, and what must hold for every program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.core import MESSAGE_RULES, LinkSharing, MessageRule, Stream
from explorer.simulate import compiled
from explorer.simulate.network import fair_shares
from tests.pictures import drawn, picture
from tests.schedules.test_family import NAMES, legal

ONE_LINK = np.zeros((4, 4), int)
BETWEEN_NODES = np.kron(np.eye(2, dtype=int), -np.ones((2, 2), int))  # ranks 0–1 and 2–3: one link, both ways
SHARINGS: tuple[LinkSharing, ...] = ("fair", "queue")


def two_lines() -> ex.Program:
    """Micro-batch 0 goes from rank 0 to rank 1, micro-batch 1 from rank 2 to rank 3."""
    placement = ex.Placement(4, np.array([[0, 1], [2, 3]]), np.array([0, 1]))
    return ex.Program.from_orders("two lines", placement, 2, ["0F0", "1F0", "0F1", "1F1"])


def messages(trace: ex.Trace) -> ex.Events:
    """By sender."""
    events = trace.events
    return events.take(events.stream == Stream.SEND)


def simulated(costs: ex.Costs) -> ex.Events:
    return messages(ex.simulate(two_lines(), costs))


def test_two_messages_sent_together_take_twice_as_long() -> None:
    costs = ex.Costs(bandwidth=2.0, message_bytes=6.0, links=ONE_LINK)
    both = simulated(costs)  # 3 seconds alone, from 1 s on
    assert (both.start.tolist(), both.end.tolist(), both.wait.tolist()) == ([1, 1], [7, 7], [0, 0])
    assert both.bytes.tolist() == [6, 6]
    assert ex.simulate(two_lines(), costs).events.start[[1, 3]].tolist() == [7, 7]  # who needs them


def test_a_message_is_slowed_only_while_another_is_there() -> None:
    """Sent at 1 and 2 s: alone for a second, then at half, then the second alone again."""
    both = simulated(ex.Costs(bandwidth=2.0, message_bytes=6.0, links=ONE_LINK, delays={"0F1": 1.0}))
    # at 2 s the first has 2 of its 3 seconds left, 4 at half; by then the second has moved 2 of its 3
    np.testing.assert_allclose(both.start, [1, 2])
    np.testing.assert_allclose(both.end, [6, 7])


def test_a_short_message_overtakes_a_long_one() -> None:
    """Lengths 9 and 1 seconds, sent at 1 and 3 s: the short one takes 2 at half, and costs the long one 1."""
    sizes = np.array([[9.0, 1.0]])
    costs = ex.Costs(bandwidth=1.0, message_bytes=np.vstack([sizes, sizes]), links=ONE_LINK, delays={"0F1": 2.0})
    np.testing.assert_allclose(simulated(costs).end, [11, 5])


def test_latency_is_not_shared() -> None:
    both = simulated(ex.Costs(latency=0.5, bandwidth=2.0, message_bytes=6.0, links=ONE_LINK))
    assert both.end.tolist() == [7.5, 7.5]


def test_each_message_moves_at_its_part_of_its_own_bandwidth() -> None:
    """3 and 6 seconds alone: 6 at half for the first; the second has 3 left by then."""
    bandwidth = np.full((4, 4), 2.0)
    bandwidth[2, 3] = 1.0
    assert simulated(ex.Costs(bandwidth=bandwidth, message_bytes=6.0, links=ONE_LINK)).end.tolist() == [7, 10]


def test_in_a_queue_the_second_waits() -> None:
    costs = ex.Costs(bandwidth=2.0, message_bytes=6.0, links=ONE_LINK, sharing="queue", delays={"0F1": 1.0})
    both = simulated(costs)
    assert (both.start.tolist(), both.end.tolist(), both.wait.tolist()) == ([1, 4], [4, 7], [0, 2])


def test_of_two_sent_together_the_lower_rank_comes_first() -> None:
    both = simulated(ex.Costs(bandwidth=2.0, message_bytes=6.0, links=ONE_LINK, sharing="queue"))
    assert both.end.tolist() == [4, 7]


def test_latency_holds_no_link() -> None:
    costs = ex.Costs(latency=9.0, bandwidth=2.0, message_bytes=6.0, links=ONE_LINK, sharing="queue")
    assert sorted(simulated(costs).end.tolist()) == [13, 16]


def test_messages_of_one_pair_share_its_link_too() -> None:
    """Sent at 1 and 2 s, 2 seconds each: alone they overlap, on one link the second comes at 5."""
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2)
    alone, own = (
        messages(ex.simulate(program, ex.Costs(bandwidth=1.0, message_bytes=2.0, links=links)))
        for links in (None, [[-1, 0], [1, -1]])
    )
    assert alone.end.tolist() == [3, 4]
    assert own.end.tolist() == [4, 5]


WRAPPED = ["0F0 0F1 4F0 4F1", "1F0 1F1 5F0 5F1", "2F0 2F1 6F0 6F1", "3F0 3F1 7F0 7F1"]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (
            None,
            """
            |F0F1 . . . .F0 . .F1 . . . .|
            | .F0F1 - - . .F0 . .F1 . . .|
            | . . .F0 . .F1 . .F0 . .F1 .|
            | . . . .F0 . .F1 . .F0 . .F1|
            """,
        ),
        # at 5 s the first micro-batch comes back from rank 3 as the second goes to rank 2: both arrive at 7;
        # at 9 s the second comes back as the first goes there again
        (
            BETWEEN_NODES,
            """
            |F0F1 . . . . .F0 . . .F1 . . . .|
            | .F0F1 - - . . .F0 . . .F1 . . .|
            | . . .F0 . . .F1 . . .F0 . .F1 .|
            | . . . .F0 . . .F1 . . .F0 . .F1|
            """,
        ),
    ],
)
def test_what_wraps_around_hinders_what_goes_forward(links: object, expected: str) -> None:
    """Four ranks on two nodes with two stages each; a message between nodes takes 1 s, within one none."""
    program = ex.Program.from_orders("wrapped", ex.Placement.looped(4, 2), 2, WRAPPED)
    bandwidth = np.where(BETWEEN_NODES < 0, np.inf, 1.0)
    costs = ex.Costs(bandwidth=bandwidth, message_bytes=1.0, delays={"1F1": 2.0}, links=links)
    assert picture(ex.simulate(program, costs)) == drawn(expected)
    assert picture(ex.simulate_events(program, costs)) == drawn(expected)


def test_a_node_has_a_way_out_and_a_way_in() -> None:
    links = ex.node_links(5, ranks_per_node=2)  # three nodes, ways in 3, 4 and 5
    assert links[0, 1].tolist() == links[4, 4].tolist() == [-1, -1]
    assert links[1, 2].tolist() == [0, 4]
    assert links[2, 1].tolist() == [1, 3]
    assert links[4, 0].tolist() == [2, 3]


def test_fair_parts_are_max_min() -> None:
    # Bertsekas and Gallager, section 6.5.2: a session over links shared by two and by three others
    shares = fair_shares({0: (0,), 1: (0,), 2: (0, 1), 3: (1,)})
    assert list(shares) == [0, 1, 2, 3]
    np.testing.assert_allclose([shares[flow] for flow in range(4)], [1 / 3, 1 / 3, 1 / 3, 2 / 3])
    assert fair_shares({7: (0, 1)}) == {7: 1.0}
    assert fair_shares({}) == {}


seconds = st.floats(0, 4, allow_nan=False)
positive = st.floats(0.125, 4, allow_nan=False)
family = given(st.data(), st.sampled_from(NAMES), st.integers(2, 4), st.integers(1, 6), st.integers(1, 3))


def costs_of(data: st.DataObject, program: ex.Program) -> dict[str, object]:
    return {
        "forward": data.draw(positive),
        "backward": data.draw(positive),
        "latency": data.draw(seconds),
        "bandwidth": 10.0,
        "message_bytes": 10 * data.draw(positive),
        "sharing": data.draw(st.sampled_from(SHARINGS)),
    }


def union(start: np.ndarray, end: np.ndarray) -> float:
    order = np.argsort(start)
    until = np.maximum.accumulate(end[order])
    begin = np.maximum(start[order], np.concatenate([[-np.inf], until[:-1]]))
    return float(np.maximum(until - begin, 0).sum())


@settings(deadline=None, max_examples=40)
@family
def test_a_link_never_rests_while_it_has_messages_and_moves_each_byte_once(
    data: st.DataObject, name: str, p: int, m: int, v: int
) -> None:
    """All messages on one link: it is busy for exactly as long as they take one after the other."""
    program = legal(name, p, m, v)
    costs = ex.Costs(**costs_of(data, program), links=np.zeros((program.n_ranks, program.n_ranks), int))
    found = messages(ex.simulate(program, costs))
    alone = np.asarray(costs.message_bytes) / costs.bandwidth
    moved = found.end - costs.latency
    assert union(found.start, moved) == pytest.approx(len(found) * alone)
    assert (moved - found.start >= alone - 1e-9).all()
    if costs.sharing == "queue":
        assert union(found.start, moved) == pytest.approx((moved - found.start).sum())  # one at a time


@settings(deadline=None, max_examples=40)
@family
def test_fair_messages_end_when_the_link_has_given_each_its_seconds(
    data: st.DataObject, name: str, p: int, m: int, v: int
) -> None:
    """Virtual time, which runs at 1 / n beside n messages: each ends its own seconds after it was sent.

    Source: Parekh and Gallager 1993, IEEE/ACM Transactions on Networking 1(3), section II.
    """
    program = legal(name, p, m, v)
    links = np.zeros((program.n_ranks, program.n_ranks), int)
    costs = ex.Costs(**{**costs_of(data, program), "sharing": "fair"}, links=links)
    found = messages(ex.simulate(program, costs))
    moved = found.end - costs.latency
    times = np.unique(np.concatenate([found.start, moved]))
    middle = (times[1:] + times[:-1]) / 2
    beside = ((found.start <= middle[:, None]) & (moved >= middle[:, None])).sum(axis=1)
    virtual = np.concatenate([[0.0], np.cumsum(np.diff(times) / np.maximum(beside, 1))])
    given_each = np.interp(moved, times, virtual) - np.interp(found.start, times, virtual)
    np.testing.assert_allclose(given_each, np.asarray(costs.message_bytes) / costs.bandwidth, atol=1e-6)


@settings(deadline=None, max_examples=40)
@family
def test_shared_links_make_nothing_come_sooner_and_both_engines_agree(
    data: st.DataObject, name: str, p: int, m: int, v: int
) -> None:
    program = legal(name, p, m, v)
    given_costs = costs_of(data, program)
    shared = ex.Costs(**given_costs, links=ex.node_links(program.n_ranks, ranks_per_node=data.draw(st.integers(1, 3))))
    trace = ex.simulate(program, shared)
    same(trace, ex.simulate_events(program, shared))
    alone = ex.simulate(program, ex.Costs(**given_costs)).events
    assert (trace.events.end >= alone.end - 1e-9).all()
    assert trace.events.bytes.tolist() == alone.bytes.tolist()


def same(trace: ex.Trace, reference: ex.Trace) -> None:
    for column, values in trace.events.columns().items():
        np.testing.assert_allclose(values, reference.events.columns()[column], atol=1e-9, err_msg=column)


@settings(deadline=None, max_examples=40)
@family
def test_the_compiled_loops_do_what_the_reference_does(data: st.DataObject, name: str, p: int, m: int, v: int) -> None:
    """Small programs take them only here; in Python, as where there is no compiler."""
    program = legal(name, p, m, v)
    links = ex.node_links(program.n_ranks, ranks_per_node=data.draw(st.integers(1, 3)))
    costs = ex.Costs(**costs_of(data, program), links=data.draw(st.sampled_from([links, links * 0, links[..., :1]])))
    rule = data.draw(st.sampled_from([None, "buffered", "coalesced", "two_streams"]))
    with_messages = ex.add_messages(program) if rule else program
    if rule and (len(with_messages.kind) == len(program.kind) or ex.check_messages(with_messages, rule).hangs):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "LARGE", 0)
        trace = ex.simulate(with_messages, costs, messages=rule)
    same(trace, ex.simulate_events(with_messages, costs, messages=rule))


@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_compiled_loops_are_used_where_it_is_large(sharing: LinkSharing) -> None:
    program = ex.schedule("interleaved_1f1b", n_ranks=8, n_micro_batches=64, n_chunks=2)
    costs = ex.Costs(latency=0.05, bandwidth=1.0, message_bytes=1.8, links=ex.node_links(8, ranks_per_node=2))
    costs = replace(costs, sharing=sharing)
    same(ex.simulate(program, costs), ex.simulate_events(program, costs))


def test_a_full_buffer_holds_back_what_shares_a_link_too() -> None:
    """With room for one item between two stages, item 2 begins once item 0 has begun behind: an edge from a start."""
    placement = ex.Placement.looped(2)
    orders = ["0F0 0F1 0F2", "1F0 1F1 1F2"]
    program = ex.Program.from_orders("room for one", placement, 3, orders, capacities=np.array([1]))
    costs = ex.Costs(forward=[1.0, 3.0], bandwidth=1.0, message_bytes=2.0, links=[[-1, 0], [0, -1]])
    for large in (0, 2048):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "LARGE", large)
            trace = ex.simulate(program, costs)
        # messages of 2 s, sent at 1 and 2 s: beside the second, the first takes until 4 s
        np.testing.assert_allclose(trace.events.start[:3], [0, 1, 4])
        same(trace, ex.simulate_events(program, costs))


@settings(deadline=None, max_examples=40)
@family
def test_links_of_ones_own_change_nothing(data: st.DataObject, name: str, p: int, m: int, v: int) -> None:
    """Neither where no link is named, nor where each pair's has room: a message over before the next is sent."""
    program = legal(name, p, m, v)
    given_costs = costs_of(data, program)
    given_costs["message_bytes"] = 10 * min(given_costs["forward"], given_costs["backward"] / 2) * 0.99
    size = program.n_ranks
    plain = ex.simulate(program, ex.Costs(**given_costs)).events
    kinds = program.kind
    apart = [np.full((size, size), -1)]
    if not ((kinds == ex.Kind.W).any() or program.n_slots < program.n_actions or program.n_segments > 1):
        apart.append(np.arange(size**2).reshape(size, size))
    for links in apart:
        for run in (ex.simulate, ex.simulate_events):
            own = run(program, ex.Costs(**given_costs, links=links)).events
            for column, values in own.columns().items():
                np.testing.assert_allclose(values, plain.columns()[column], atol=1e-9, err_msg=column)


@settings(deadline=None, max_examples=40)
@given(
    st.data(),
    st.sampled_from(NAMES),
    st.integers(2, 4),
    st.integers(1, 5),
    st.integers(1, 2),
    st.sampled_from(MESSAGE_RULES),
)
def test_messages_that_meet_by_a_rule_share_links(
    data: st.DataObject, name: str, p: int, m: int, v: int, rule: MessageRule
) -> None:
    program = ex.add_messages(legal(name, p, m, v))
    if not ex.core.is_message(program).any() or ex.check_messages(program, rule).hangs:
        return
    given_costs = costs_of(data, program)
    shared = ex.Costs(**given_costs, links=np.zeros((program.n_ranks, program.n_ranks), int))
    trace = ex.simulate(program, shared, messages=rule)
    same(trace, ex.simulate_events(program, shared, messages=rule))
    alone = ex.simulate(program, ex.Costs(**given_costs), messages=rule).events
    assert (trace.events.end >= alone.end - 1e-9).all()


def test_a_send_stands_in_the_queue_of_its_link() -> None:
    """Rank 2's message waits 2 s for rank 0's, and rank 2 with it."""
    costs = ex.Costs(bandwidth=2.0, message_bytes=6.0, links=ONE_LINK, sharing="queue", delays={"0F1": 1.0})
    events = ex.simulate(ex.add_messages(two_lines()), costs, messages="rendezvous").events
    sends = events.take(events.stream == Stream.SEND)
    assert (sends.start.tolist(), sends.end.tolist(), sends.wait.tolist()) == ([1, 4], [4, 7], [0, 2])


def test_a_group_is_over_when_all_its_messages_are() -> None:
    """Two messages of 3 s begun together by one rank, over one link: both bring the group to 6 s."""
    placement = ex.Placement(3, np.array([[0, 1], [0, 2]]), np.array([0, 1]))
    orders = ["0F0 0F1 (0SEND_F0;0SEND_F1)", "1RECV_F0 1F0", "1RECV_F1 1F1"]
    program = ex.Program.from_orders("group", placement, 2, orders)
    costs = ex.Costs(bandwidth=2.0, message_bytes=6.0, links=np.zeros((3, 3), int))
    events = ex.simulate(program, costs, messages="coalesced").events
    sends = events.take(events.stream == Stream.SEND)
    assert (sends.start.tolist(), sends.end.tolist()) == ([2, 2], [8, 8])
