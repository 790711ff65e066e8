"""Faults where each rank is a process: as foretold, named, marked, and survived."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import RunError
from explorer.execute.keeper import prepare
from tests.execute.ranks import SOON, WIDTH, Slow, children, execute, forker

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(2)


def seconds_of(events, kind, stage, step):
    rows = (events.kind == kind) & (events.stage == stage) & (events.step == step)
    return (events.end - events.start)[rows]


def test_a_slow_rank_is_slow_from_its_step_on_and_no_other_is(program, batch):
    layers = [Slow(WIDTH, WIDTH), Slow(WIDTH, WIDTH)]  # 20 ms a forward
    run = execute(program, layers, batch, n_steps=2, faults=[ex.SlowRank(rank=1, factor=3.0, from_step=1)])
    assert run.parity
    events = run.trace.events
    assert np.median(seconds_of(events, ex.Kind.F, 1, 1)) > 0.06
    assert np.median(seconds_of(events, ex.Kind.F, 1, 0)) < 0.06
    assert np.median(seconds_of(events, ex.Kind.F, 0, 1)) < 0.06
    assert [(mark.step, mark.rank, mark.text) for mark in run.trace.marks] == [
        (1, 1, "slow rank=1 factor=3 from_step=1")
    ]


@pytest.mark.parametrize("action", ["0F0", "1B0"])
def test_a_late_message_leaves_late_its_sender_goes_on_and_what_follows_stays_in_order(
    action, program, make_layers, batch
):
    fault = ex.DelayMessage(action=action, seconds=0.4, step=1)
    run = execute(program, make_layers(2), batch, n_steps=2, faults=[fault])
    assert run.parity  # no message was taken for another
    events = run.trace.step(1).events
    kind, back = (ex.Kind.B, ex.Kind.SEND_B) if "B" in action else (ex.Kind.F, ex.Kind.SEND_F)
    stage = int(action[0])
    mine = (events.micro_batch == 0) & (events.stage == stage)
    made = events.end[mine & (events.kind == kind)][0]
    left = events.start[mine & (events.kind == back)][0]
    assert left - made > 0.4
    next_on_rank = events.start[(events.rank == stage) & (events.kind == ex.Kind.F) & (events.start > made)]
    assert next_on_rank.min() < left
    assert [mark.text for mark in run.trace.marks] == [str(fault)]


@pytest.mark.parametrize("action", ["1F2", "0B2"])
def test_an_error_names_its_place_and_leaves_what_all_ranks_did(action, program, make_layers, batch):
    rank = int(action[0])
    begin = time.monotonic()
    with pytest.raises(RunError, match=rf"{action} .*on rank {rank}, step 1\) failed in layer {rank}: Inj") as caught:
        execute(program, make_layers(2), batch, n_steps=3, faults=[ex.FailAction(action=action, step=1)])
    assert time.monotonic() - begin < 2 * SOON
    trace = caught.value.trace
    computed = np.isin(trace.events.kind, (ex.Kind.F, ex.Kind.B))
    assert computed[trace.events.step == 0].sum() == program.n_actions
    assert set(trace.step(1).events.rank.tolist()) == {0, 1}
    assert [(mark.rank, mark.text) for mark in trace.marks] == [(rank, f"raise action={action} step=1")]
    assert not children(forker())


def test_a_killed_rank_is_named_with_what_it_did_last_and_the_outage_is_in_the_trace(program, make_layers, batch):
    fault = ex.KillRank(rank=1, step=1, action="1B1")
    begin = time.monotonic()
    with pytest.raises(RunError) as caught:
        execute(program, make_layers(2), batch, n_steps=3, faults=[fault])
    assert time.monotonic() - begin < 2 * SOON
    assert "rank 1 was ended by SIGKILL in step 1, after 1F1, before 1B1; by the fault 'kill" in str(caught.value)
    trace = caught.value.trace
    (mark,) = trace.marks
    assert mark.text == str(fault)
    step = trace.step(1).events
    mine = step.take((step.rank == 1) & np.isin(step.kind, (ex.Kind.F, ex.Kind.B)))
    order = np.argsort(mine.start)
    assert [f"{ex.Kind(int(mine.kind[row])).name}{mine.micro_batch[row]}" for row in order] == ["F0", "B0", "F1"]
    assert mark.time >= mine.end.max()
    assert not children(forker())


def test_a_training_that_was_killed_goes_on_at_other_ranks_to_the_same_losses(tmp_path):
    torch.manual_seed(3)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(6)]
    batch = torch.randn(12, WIDTH), torch.randn(12, WIDTH)
    two, three = (ex.schedule("1f1b", n_ranks=n, n_micro_batches=6) for n in (2, 3))

    def adam(parameters):
        return torch.optim.Adam(parameters, lr=0.05)

    whole = ex.execute(two, layers, batch, loss=mean_squared, optimizer=adam, n_steps=4)
    fault = ex.KillRank(rank=1, step=2, action="1F3")
    with pytest.raises(RunError, match="go on with resume from a checkpoint"):
        execute(two, layers, batch, optimizer=adam, n_steps=4, faults=[fault], checkpoint=tmp_path)
    rest = execute(three, layers, batch, optimizer=adam, n_steps=2, resume=tmp_path)
    assert rest.first_step == 2
    assert rest.losses == pytest.approx(whole.losses[2:], rel=1e-5)
    assert rest.parity


def mean_squared(outputs, targets):
    return (outputs - targets).square().mean()
