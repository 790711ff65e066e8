"""Every schedule learns what the unpipelined model learns, and a run that does not says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.execute.hooks import Hook
from explorer.execute.parity import Outcome, compare

MSE = nn.functional.mse_loss


def unpipelined(layers, batch, *, optimizer=None, n_steps=1, loss=MSE):
    """Written out without any of the package's own code."""
    import copy

    model = nn.Sequential(*copy.deepcopy(layers))
    steps, losses = optimizer(model.parameters()) if optimizer else None, []
    for _ in range(n_steps):
        model.zero_grad()
        value = loss(model(batch[0]), batch[1])
        value.backward()
        losses.append(value.item())
        if steps:
            steps.step()
    return model, losses


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("naive", {"n_ranks": 3, "n_micro_batches": 4}),
        ("gpipe", {"n_ranks": 3, "n_micro_batches": 4}),
        ("1f1b", {"n_ranks": 3, "n_micro_batches": 4}),
        ("1f1b", {"n_ranks": 4, "n_micro_batches": 2}),
        ("interleaved_1f1b", {"n_ranks": 2, "n_micro_batches": 4, "n_chunks": 2}),
    ],
)
def test_losses_gradients_and_weights_equal_the_unpipelined_models(name, numbers, make_layers, batch, sgd):
    program = ex.schedule(name, **numbers)
    layers = make_layers(program.n_stages)
    model, losses = unpipelined(layers, batch, optimizer=sgd, n_steps=3)
    run = ex.execute(program, layers, batch, loss=MSE, optimizer=sgd, n_steps=3)
    assert run.parity
    assert run.parity_worst < 1e-5
    assert run.losses == pytest.approx(losses, rel=1e-6)
    for parameter_name, parameter in model.named_parameters():
        torch.testing.assert_close(run.gradients[parameter_name], parameter.grad, rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(run.state_dict()[parameter_name], parameter.detach(), rtol=1e-5, atol=1e-7)


def test_split_backwards_give_the_unpipelined_gradients(split_program, make_layers, batch, sgd):
    layers = make_layers(2)
    model, losses = unpipelined(layers, batch, optimizer=sgd, n_steps=2)
    run = ex.execute(split_program, layers, batch, loss=MSE, optimizer=sgd, n_steps=2)
    assert run.parity
    assert run.losses == pytest.approx(losses, rel=1e-6)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(run.gradients[name], parameter.grad, rtol=1e-5, atol=1e-7)


def test_forward_only_gives_the_models_outputs(make_layers, batch):
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=4, n_chunks=2)
    layers = make_layers(4)
    run = ex.execute(program, layers, batch)
    assert run.parity
    torch.testing.assert_close(run.outputs, nn.Sequential(*layers)(batch[0]).detach())
    assert run.losses == []
    assert run.gradients == {}


def test_forward_only_with_a_loss_evaluates(make_layers, batch):
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=4)
    layers = make_layers(2)
    run = ex.execute(program, layers, batch, loss=MSE, n_steps=2)
    assert run.losses == pytest.approx([MSE(nn.Sequential(*layers)(batch[0]), batch[1]).item()] * 2)
    assert run.parity


def test_a_wrong_gradient_is_seen(program, make_layers, batch):
    class Sabotage(Hook):
        def step_end(self, event):
            seen["gradient"].mul_(2)

    seen = {}

    class Keep(nn.Linear):
        def forward(self, x):
            if self.weight.grad is not None:
                seen["gradient"] = self.weight.grad
            return super().forward(x)

    run = ex.execute(program, [Keep(8, 8), *make_layers(1)], batch, loss=MSE, hooks=[Sabotage()])
    assert not run.parity
    assert run.parity_worst == pytest.approx(1.0, rel=1e-3)  # twice the gradient is one gradient too much


def test_a_wrong_optimizer_step_is_seen(program, make_layers, batch):
    made = []

    def every_stage_but_one(parameters):
        made.append(torch.optim.SGD(parameters, lr=0.5 if len(made) == 2 else 0.1))
        return made[-1]

    assert not ex.execute(program, make_layers(2), batch, loss=MSE, optimizer=every_stage_but_one, n_steps=2).parity


def test_a_summing_loss_is_divided_and_said_so(program, make_layers, batch, sgd):
    run = ex.execute(program, make_layers(2), batch, loss=nn.MSELoss(reduction="sum"), optimizer=sgd, n_steps=2)
    assert run.parity
    assert "loss divided by 4: this loss sums over the batch" in run.reference


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm1d(8)])
def test_layers_that_see_the_batch_are_compared_by_micro_batch(layer, program, make_layers, batch, sgd):
    layers = [*make_layers(1), layer, *make_layers(1)]
    run = ex.execute(program, layers, batch, loss=MSE, optimizer=sgd, n_steps=2)
    assert run.parity
    assert "same 4 micro-batches with the same seeds" in run.reference


def test_a_module_with_split_points_is_traced(program, batch, sgd):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.leave = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.leave(torch.relu(self.enter(x))) * 2

    run = ex.execute(program, Net(), batch, loss=MSE, split_points=["leave"], optimizer=sgd, n_steps=2)
    assert run.parity
    assert set(run.gradients) == {"enter.weight", "enter.bias", "leave.weight", "leave.bias"}


def test_an_overlap_takes_the_sum_of_its_parts(batch, clock, timed):
    together = ex.Overlap((ex.Action.parse("1B0"), ex.Action.parse("1F1")))
    orders = [["0F0", "0F1", "0B0", "0B1"], ["1F0", together, "1B1"]]
    program = ex.Program.from_orders("overlap", ex.Placement.looped(2), 2, orders)
    run = ex.execute(program, [timed(1, 2), timed(1, 2)], batch, loss=MSE, clock=clock)
    assert run.parity
    rows = run.trace.events.take(run.trace.events.slot + 10 * run.trace.events.rank == 11)
    assert (rows.end - rows.start).tolist() == [3.0, 3.0]


def test_a_forward_that_is_off_by_a_hundred_thousandth_is_seen():
    weights = {"weight": torch.ones(2)}
    reference = Outcome([1.0, 0.5], {}, weights)
    assert compare(Outcome([1.0 + 1e-7, 0.5], {}, weights), reference, "").holds
    assert not compare(Outcome([1.0 + 1e-5, 0.5], {}, weights), reference, "").holds
