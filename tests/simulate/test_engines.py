"""Both engines give the same trace, for the whole family."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import explorer as ex
from explorer.core import Kind, Origin, Stream, Waits
from tests.schedules.test_family import NAMES, legal

seconds = st.floats(0, 4, allow_nan=False)


@st.composite
def costs_for(draw: st.DrawFn, program: ex.Program) -> ex.Costs:
    def by_stage() -> np.ndarray:
        return np.array(draw(st.lists(seconds, min_size=program.n_stages, max_size=program.n_stages)))

    size = program.n_ranks**2
    latency = np.array(draw(st.lists(seconds, min_size=size, max_size=size))).reshape(program.n_ranks, -1)
    return ex.Costs(
        forward=by_stage(),
        backward=by_stage(),
        fixed=draw(seconds),
        latency=latency,
        bandwidth=draw(st.sampled_from([np.inf, 10.0])),
        message_bytes=draw(st.sampled_from([0.0, 5.0])),
        time_factor=draw(st.sampled_from([1.0, 1.5])),
        activation_bytes=by_stage() * 100,
        parameter_bytes=7.0,
    )


@given(st.data(), st.sampled_from(NAMES), st.integers(1, 6), st.integers(1, 10), st.integers(1, 3))
def test_both_engines_give_the_same_trace(data: st.DataObject, name: str, p: int, m: int, v: int) -> None:
    program = legal(name, p, m, v)
    costs = data.draw(costs_for(program))
    fast, reference = ex.simulate(program, costs), ex.simulate_events(program, costs)
    for table in ("events", "memory"):
        for column, values in getattr(fast, table).columns().items():
            np.testing.assert_allclose(values, getattr(reference, table).columns()[column], atol=1e-9, err_msg=column)


@given(st.data(), st.sampled_from(NAMES), st.integers(1, 6), st.integers(1, 10), st.integers(1, 3))
def test_no_rank_does_two_things_at_once_and_no_action_starts_early(
    data: st.DataObject, name: str, p: int, m: int, v: int
) -> None:
    """The rules, read from the trace alone and not from the code that made it."""
    program = legal(name, p, m, v)
    costs = data.draw(costs_for(program))
    frame = ex.simulate(program, costs).to_frame()
    compute = frame[frame.stream == "compute"]
    for _, lane in compute.sort_values(["rank", "slot"]).drop_duplicates(["rank", "slot"]).groupby("rank"):
        assert (lane.start.to_numpy()[1:] >= lane.end.to_numpy()[:-1] - 1e-9).all()
    at = {(e.kind, e.stage, e.micro_batch, e.segment): e for e in compute.itertuples()}
    latency = np.broadcast_to(costs.latency, (p, p)) if program.n_ranks == p else np.zeros((program.n_ranks,) * 2)
    for (kind, stage, micro_batch, segment), row in at.items():
        next_to = ("F", stage - 1) if kind == "F" else ("B", stage + 1)
        source = at.get((*next_to, micro_batch, segment))
        if source is not None:
            way = latency[source.rank, row.rank] if source.rank != row.rank else 0.0
            assert row.start >= source.end + way - 1e-9
        if kind == "B":
            assert row.start >= at[("F", stage, micro_batch, segment)].end - 1e-9


def test_messages_take_their_way_and_say_what_they_carry() -> None:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)
    costs = ex.Costs(latency=0.5, bandwidth=4.0, message_bytes=[6.0, 100.0])
    events = ex.simulate(program, costs).events
    messages = events.take(events.stream == Stream.SEND)
    # forward 0 → 1 and its gradient 1 → 0 are both as large as stage 0's output: 0.5 + 6/4 seconds
    assert messages.kind.tolist() == [Kind.SEND_F, Kind.SEND_B]
    assert messages.bytes.tolist() == [6, 6]
    np.testing.assert_allclose(messages.start, [1.0, 6.0])
    np.testing.assert_allclose(messages.end, [3.0, 8.0])
    assert (messages.rank.tolist(), messages.peer.tolist()) == ([0, 1], [1, 0])
    assert set(messages.origin.tolist()) == {Origin.SIMULATED}


def test_wait_is_the_idle_time_before_an_action() -> None:
    frame = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)).to_frame()
    first = frame[frame["rank"] == 0]
    assert first.wait.tolist() == [0.0, 0.0, 2.0, 1.0]  # F0 F1, then B0 at 4 and B1 at 7


def test_further_waits_and_buffers_hold_actions_back() -> None:
    placement = ex.Placement.looped(2)
    orders = ["0F0 0F1 0F2", "1F0 1F1 1F2"]
    costs = ex.Costs(forward=[1.0, 3.0])
    free = ex.Program.from_orders("free", placement, 3, orders)
    assert ex.simulate(free, costs).events.start[:3].tolist() == [0, 1, 2]
    # a full buffer holds the line: without room, item 1 stays on stage 0 until item 0 left stage 1 at 4
    tight = ex.Program.from_orders("tight", placement, 3, orders, capacities=np.array([0]))
    assert ex.simulate(tight, costs).events.start[:3].tolist() == [0, 1, 4]
    roomy = ex.Program.from_orders("roomy", placement, 3, orders, capacities=np.array([1]))
    assert ex.simulate(roomy, costs).events.start[:3].tolist() == [0, 1, 2]
    # a hazard: item 1 may enter only half a second after item 0 has left altogether
    hazard = Waits(np.array([3]), np.array([1]), np.array([0.5]))
    bubble = ex.Program.from_orders("hazard", placement, 3, orders, waits=hazard)
    assert ex.simulate(bubble, costs).events.start[:3].tolist() == [0, 4.5, 5.5]
    for program in (tight, roomy, bubble):
        np.testing.assert_allclose(
            ex.simulate_events(program, costs).events.start, ex.simulate(program, costs).events.start
        )


def test_an_overlap_is_timed_as_one() -> None:
    program = ex.Program.from_orders(
        "overlap",
        ex.Placement.looped(1),
        2,
        [
            [
                ex.Action.parse("0F0"),
                ex.Overlap([ex.Action.parse("0F1"), ex.Action.parse("0B0")]),
                ex.Action.parse("0B1"),
            ]
        ],
    )
    assert ex.simulate(program, ex.Costs(forward=1, backward=2)).makespan == 6.0
    trace = ex.simulate(program, ex.Costs(forward=1, backward=2, overlap=2.5))
    assert trace.makespan == 5.5
    assert trace.bubble_ratio == 0.0
    assert trace.peak_in_flight.tolist() == [2]


def test_modelled_memory_rises_and_falls_with_the_micro_batches() -> None:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    memory = ex.simulate(program, ex.Costs(activation_bytes=[10, 20], parameter_bytes=3)).memory
    for rank, size in ((0, 10), (1, 20)):
        rows = memory.take((memory.rank == rank) & (memory.category == ex.Category.ACTIVATIONS))
        order = np.lexsort((rows.delta, rows.time))
        assert np.cumsum(rows.delta[order]).max() == (2 - rank) * size
        assert rows.delta.sum() == 0
    assert memory.delta[memory.category == ex.Category.PARAMETERS].tolist() == [3, 3]
    assert memory.delta[memory.category == ex.Category.GRADIENTS].tolist() == [3, 3]


@pytest.mark.parametrize("name", NAMES)
def test_a_simulation_without_costs_is_f_1_b_2(name: str) -> None:
    program = legal(name, 4, 8, 2)
    assert ex.simulate(program).makespan == ex.simulate(program, ex.Costs(forward=1.0, backward=2.0)).makespan
