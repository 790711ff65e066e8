"""Where measured durations lie: with a clock that only layers move, to the last digit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Origin

MSE = nn.functional.mse_loss


@pytest.mark.parametrize(("latency", "makespan"), [(0.0, 33.0), (0.25, 37.0)])
def test_1f1b_on_four_ranks_takes_what_the_formula_says(latency, makespan, batch, clock, timed):
    """(M+P−1)(F+B) + (2(P−1) + 2·floor((M−1)(P−1)/P))c, from the schedule's own docstring."""
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    layers = [timed(1.0, 2.0) for _ in range(4)]
    run = ex.execute(program, layers, batch, loss=MSE, n_steps=2, clock=clock, links=ex.Costs(latency=latency))
    assert run.trace.makespan == makespan == run.predicted.makespan
    assert run.trace.clock == "virtual"
    assert run.trace.events.start[run.trace.events.step == 1].min() == makespan
    assert run.trace.costs.forward.tolist() == [1.0] * 4
    assert run.trace.costs.backward.tolist() == [2.0] * 4


def test_ranks_of_a_node_share_its_way_out_and_in(batch, clock, timed):
    """As in the example of `node_links`: messages of 2 s, of which some meet."""
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    links = ex.Costs(bandwidth=32.0, links=ex.node_links(4, ranks_per_node=2))  # 64 bytes a message
    run = ex.execute(program, [timed(1, 2) for _ in range(4)], batch, loss=MSE, clock=clock, links=links)
    assert run.trace.makespan == 66.5 == run.predicted.makespan


def test_uneven_stages_wait_for_the_slowest(batch, clock, timed):
    """Forward only: the sum of all stages, then the slowest for each further micro-batch."""
    program = ex.schedule("forward_only", n_ranks=3, n_micro_batches=4)
    run = ex.execute(program, [timed(1, 0), timed(3, 0), timed(2, 0)], batch, clock=clock)
    assert run.trace.makespan == 1 + 3 + 2 + 3 * 3


def test_operations_are_measured_and_messages_modelled(program, batch, clock, timed):
    links = ex.Costs(latency=0.5, bandwidth=64.0)
    run = ex.execute(program, [timed(1, 2), timed(1, 2)], batch, loss=MSE, clock=clock, links=links)
    events = run.trace.events
    message = events.stream == 1
    assert (events.origin[~message] == Origin.MEASURED).all()
    assert (events.origin[message] == Origin.MODELLED).all()
    assert message.sum() == 2 * 4  # an activation there and a gradient back for each micro-batch
    assert set((events.end - events.start)[message].tolist()) == {0.5 + 4 * 8 * 4 / 64}


def test_updates_follow_the_last_slot_and_count_for_no_makespan(program, batch, clock, timed):
    class Slow(torch.optim.SGD):
        def step(self, closure=None):
            clock.now += 5.0
            return super().step(closure)

    run = ex.execute(
        program,
        [timed(1, 2), timed(1, 2)],
        batch,
        loss=MSE,
        optimizer=lambda p: Slow(p, lr=0.1),
        n_steps=2,
        clock=clock,
    )
    updates = run.trace.events.take(run.trace.events.kind == ex.Kind.U)
    assert run.trace.makespan == 15.0
    assert updates.start.tolist() == [15.0, 15.0, 35.0, 35.0]
    assert updates.end.tolist() == [20.0, 20.0, 40.0, 40.0]


def test_input_gradient_of_the_first_stage_does_nothing_and_its_weights_do_it_all(split_program, batch, clock, timed):
    run = ex.execute(split_program, [timed(1, 2), timed(1, 2)], batch, loss=MSE, clock=clock)
    events = run.trace.events
    first = events.take(events.stage == 0)
    assert set((first.end - first.start)[first.kind == ex.Kind.I].tolist()) == {0.0}
    assert set((first.end - first.start)[first.kind == ex.Kind.W].tolist()) == {2.0}


def test_slots_run_in_order_of_their_expected_start(batch, clock, timed):
    """All ranks grow from left to right together."""
    seen = []

    class Order(ex.Hook):
        def slot_start(self, event):
            seen.append(event.slot)

    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=4)
    run = ex.execute(program, [timed(1, 2) for _ in range(3)], batch, loss=MSE, clock=clock, hooks=[Order()])
    events = run.trace.events
    starts = dict(zip((program.rank_offsets[events.rank] + events.slot).tolist(), events.start.tolist(), strict=True))
    assert [starts[slot] for slot in seen] == sorted(starts.values())
