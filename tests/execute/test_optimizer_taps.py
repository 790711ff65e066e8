"""Optimizer steps of a run of one's own, recorded: as the stages' U, with the step they belong to, and nothing else."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.optim import SGD, Adam, Optimizer, optimizer

import explorer as ex
from explorer.core import Kind
from explorer.execute import recording
from explorer.execute._torch import one_rank_group

N_MICRO_BATCHES = 2


@pytest.fixture
def schedule():
    with one_rank_group():
        stage = PipelineStage(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), 0, 1, torch.device("cpu"))
        yield ScheduleGPipe(stage, N_MICRO_BATCHES, loss_fn=nn.functional.mse_loss)


@pytest.fixture
def ticks(monkeypatch):
    """A clock that goes on by what is added, and by a nanosecond whenever it is read."""

    class Ticks:
        nanoseconds = staticmethod(list)

        def __init__(self):
            self.time = 0

        def now(self):
            self.time += 1
            return self.time

        def ready(self, stamp):
            return True

    made = Ticks()
    monkeypatch.setattr(recording, "clock_of", lambda device: made)
    return made


def step(schedule):
    schedule.step(torch.ones(4, 4), target=torch.zeros(4, 4))


def parameters(schedule):
    return schedule._stage.submod.parameters()


def updates(folder):
    """Step, stage and seconds of each U."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of steps without backwards
        events = ex.load(folder).events
    rows = events.take(events.kind == Kind.U)
    return [
        (s, g, round(e - b, 6))
        for s, g, b, e in zip(*(c.tolist() for c in (rows.step, rows.stage, rows.start, rows.end)), strict=True)
    ]


class Slow(SGD):
    """Takes so many nanoseconds of a clock."""

    def __init__(self, parameters, ticks, nanoseconds):
        super().__init__(parameters, lr=0.1)
        self.ticks, self.nanoseconds = ticks, nanoseconds

    def step(self, closure=None):
        self.ticks.time += self.nanoseconds
        return super().step(closure)


def test_each_update_follows_its_step_with_its_own_seconds(schedule, tmp_path, ticks):
    SGD(parameters(schedule), lr=0.1)  # from here on torch tells of SGD's own step, too, within Slow's
    own = Slow(parameters(schedule), ticks, 5_000_000)
    with ex.record(tmp_path, schedule):
        for _ in range(3):
            step(schedule)
            own.step()
    assert updates(tmp_path) == [(n, 0, 0.005) for n in range(3)]
    trace = ex.load(tmp_path)
    for number in trace.steps:
        of_step = trace.events.take(trace.events.step == number)
        is_update = of_step.kind == Kind.U
        assert of_step.start[is_update] > of_step.end[~is_update].max()
    assert ex.timeline(trace).data


def test_weights_are_those_of_an_unrecorded_training(schedule, tmp_path):
    def trained(record_into):
        torch.manual_seed(3)
        for parameter in parameters(schedule):
            nn.init.normal_(parameter)
        own = Adam(parameters(schedule), lr=0.1)
        with ex.record(record_into, schedule) if record_into else torch.enable_grad():
            for _ in range(3):
                own.zero_grad()
                step(schedule)
                own.step()
        return torch.cat([p.detach().flatten() for p in parameters(schedule)])

    assert torch.equal(trained(tmp_path), trained(None))


def test_an_update_belongs_to_the_last_step_that_trained(schedule, tmp_path):
    own = SGD(parameters(schedule), lr=0.1)
    with ex.record(tmp_path, schedule):
        own.step()  # before any step: of nothing recorded
        step(schedule)
        step(schedule)  # gradients are added up over two steps
        schedule.eval(torch.ones(4, 4), target=torch.zeros(4, 4))
        own.step()
    assert [(number, stage) for number, stage, _ in updates(tmp_path)] == [(1, 0)]


def test_other_optimizers_are_not_told_of(schedule, tmp_path):
    stranger = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    with ex.record(tmp_path, schedule) as file:
        step(schedule)
        stranger.step()
    assert '"update"' not in file.read_text()


def test_afterwards_no_hook_is_left(schedule, tmp_path):
    own, before = SGD(parameters(schedule), lr=0.1), dict(optimizer._global_optimizer_pre_hooks)
    with ex.record(tmp_path, schedule) as file:
        step(schedule)
        assert len(optimizer._global_optimizer_pre_hooks) == len(before) + 1
    text = file.read_text()
    own.step()
    assert optimizer._global_optimizer_pre_hooks == before
    assert file.read_text() == text


class Wrapper(Optimizer):
    """Steps by another's step, as sharded and mixed-precision optimizers do."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step()


def test_an_optimizer_within_another_is_a_part_of_it(schedule, tmp_path, ticks):
    own = Wrapper(Slow(parameters(schedule), ticks, 1_000_000))
    with ex.record(tmp_path, schedule):
        step(schedule)
        own.step()
    assert updates(tmp_path) == [(0, 0, 0.001)]


def test_an_update_that_raises_is_not_told_of_and_the_next_one_is(schedule, tmp_path):
    class Raising(SGD):
        fails = True

        def step(self, closure=None):
            if self.fails:
                raise ValueError("too steep")
            return super().step(closure)

    own, other = Raising(parameters(schedule), lr=0.1), SGD(parameters(schedule), lr=0.1)
    with ex.record(tmp_path, schedule):
        step(schedule)
        with pytest.raises(ValueError, match="too steep"):
            own.step()
        step(schedule)
        other.step()
        own.fails = False
        own.step()
    assert [number for number, _, _ in updates(tmp_path)] == [1, 1]


def test_a_step_of_the_schedule_within_an_optimizers_step_is_no_update(schedule, tmp_path):
    own = torch.optim.LBFGS(parameters(schedule), max_iter=1)

    def closure():
        own.zero_grad()
        step(schedule)
        return torch.zeros(())

    with ex.record(tmp_path, schedule):
        step(schedule)
        own.step(closure)
    assert updates(tmp_path) == []


def test_two_recordings_at_once_both_hear_of_it(schedule, tmp_path):
    own = SGD(parameters(schedule), lr=0.1)
    with ex.record(tmp_path / "a", schedule), ex.record(tmp_path / "b", schedule):
        step(schedule)
        own.step()
    assert len(updates(tmp_path / "a")) == len(updates(tmp_path / "b")) == 1
