"""What belongs to the caller is as it was, however a run ends."""

from __future__ import annotations

import copy
import gc
import random
import sys
import threading

import pytest
import torch
import torch.distributed as dist
from torch import nn

import explorer as ex
from explorer.errors import RunError, RunStopped

MSE = nn.functional.mse_loss


class World:
    """All a run might disturb."""

    def __init__(self, layers):
        self.layers, self.before = layers, copy.deepcopy(layers)
        self.torch_state, self.python_state = torch.get_rng_state(), random.getstate()
        self.threads, self.collects = torch.get_num_threads(), gc.isenabled()
        self.interval, self.excepthook = sys.getswitchinterval(), sys.excepthook
        self.grad = torch.is_grad_enabled()

    def assert_untouched(self):
        assert torch.equal(torch.get_rng_state(), self.torch_state)
        assert random.getstate() == self.python_state
        assert torch.get_num_threads() == self.threads
        assert gc.isenabled() == self.collects
        assert sys.getswitchinterval() == self.interval
        assert sys.excepthook is self.excepthook
        assert torch.is_grad_enabled() == self.grad
        assert not dist.is_initialized()
        for layer, before in zip(self.layers, self.before, strict=True):
            assert layer.training == before.training
            for (name, value), (_, old) in zip(layer.state_dict().items(), before.state_dict().items(), strict=True):
                assert torch.equal(value, old), name
            assert all(parameter.grad is None for parameter in layer.parameters())
            assert [len(module._forward_hooks) for module in layer.modules()] == [
                len(module._forward_hooks) for module in before.modules()
            ]


@pytest.fixture
def layers():
    return [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 8)).eval()]


def test_a_run_leaves_the_callers_world_as_it_was(program, layers, batch, sgd):
    world = World(layers)
    ex.execute(program, layers, batch, loss=MSE, optimizer=sgd, n_steps=2)
    world.assert_untouched()


def test_a_failed_run_leaves_it_too(program, layers, batch, failing):
    broken = failing(8)
    world = World(layers)
    with pytest.raises(RunError, match="a fuse has blown"):
        ex.execute(program, [*layers, broken], batch, loss=MSE)
    world.assert_untouched()


def test_a_stopped_run_leaves_it_too(program, layers, batch):
    world, stop = World(layers), ex.Stop()
    stop.set()
    with pytest.raises(RunStopped, match="the run was stopped"):
        ex.execute(program, layers, batch, loss=MSE, hooks=[stop])
    world.assert_untouched()


def test_settings_of_the_caller_are_kept(program, layers, batch):
    gc.disable()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            assert ex.execute(program, layers, batch, loss=MSE).parity
            assert not torch.is_grad_enabled()
        assert not gc.isenabled()
        assert torch.get_num_threads() == 2
    finally:
        gc.enable()
        torch.set_num_threads(threads)


def test_inputs_that_want_gradients_get_none(program, make_layers, batch):
    inputs = batch[0].requires_grad_()
    assert ex.execute(program, make_layers(2), (inputs, batch[1]), loss=MSE).parity
    assert inputs.grad is None


def test_the_callers_own_process_group_is_left_alone(program, make_layers, batch):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(RunError, match=r"already has a default group \(gloo, 1 ranks\)"):
            ex.execute(program, make_layers(2), batch, loss=MSE)
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()


def test_a_second_run_at_a_time_is_refused(program, make_layers, batch):
    refused = []

    class Nested(ex.Hook):
        def step_start(self, event):
            other = threading.Thread(target=self.run)
            other.start()
            other.join()

        def run(self):
            try:
                ex.execute(program, make_layers(2), batch, loss=MSE)
            except RunError as error:
                refused.append(str(error))

    assert ex.execute(program, make_layers(2), batch, loss=MSE, hooks=[Nested()]).parity
    assert refused == ["a process executes one run at a time; another one is under way; stop it or wait for its end"]


def test_every_forward_really_runs(program, make_layers, batch):
    """4 micro-batches in each of 3 steps, besides the fit, the warm-up's 4 and the reference's whole batches."""
    calls = {8: 0, 4: 0, 16: 0}
    layers = make_layers(2)
    layers[0][0].register_forward_hook(
        lambda module, inputs, output: calls.update({len(output): calls[len(output)] + 1})
    )
    ex.execute(program, layers, batch, loss=MSE, n_steps=3)
    assert calls == {4: 1 + 4 + 4 * 3, 16: 3, 8: 0}
