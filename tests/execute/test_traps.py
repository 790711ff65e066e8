"""What torch's runtime would get wrong if it were left alone."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import RunError

MSE = nn.functional.mse_loss


def test_losses_belong_to_their_micro_batch_whatever_the_order(make_layers, batch):
    """Torch looks a loss up by the index it was appended at."""
    orders = [
        ["0F1", "0F0", "0F3", "0F2", "0B1", "0B0", "0B2", "0B3"],
        ["1F1", "1F0", "1B1", "1B0", "1F3", "1F2", "1B2", "1B3"],
    ]
    program = ex.Program.from_orders("shuffled", ex.Placement.looped(2), 4, orders)
    assert ex.execute(program, make_layers(2), batch, loss=MSE).parity


def test_explicit_messages_are_refused(make_layers, batch):
    """Torch matches them by order alone and hands over the wrong tensor in silence."""
    orders = [["0F0", "0SEND_F0", "0B0"], ["1RECV_F0", "1F0", "1B0"]]
    program = ex.Program.from_orders("messages", ex.Placement.looped(2), 1, orders)
    with pytest.raises(ex.ExplorerError, match=r"hands messages over by itself.*0SEND_F0"):
        ex.execute(program, make_layers(2), batch, loss=MSE)


def test_gradients_are_those_of_the_last_step_alone(program, make_layers, batch):
    """Torch divides kept gradients by the number of micro-batches again at every step."""
    layers = make_layers(2)
    once = ex.execute(program, layers, batch, loss=MSE, n_steps=1)
    thrice = ex.execute(program, layers, batch, loss=MSE, n_steps=3)
    for name, gradient in once.gradients.items():
        torch.testing.assert_close(thrice.gradients[name], gradient, rtol=0, atol=0)


def test_torchs_wrong_1f1b_order_is_refused(make_layers, batch):
    """Torch 2.13 lists the last rank's forwards twice over and leaves others out."""
    orders = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F0", "1B1"]]
    program = ex.Program.from_orders("wrong", ex.Placement.looped(2), 2, orders)
    with pytest.raises(ex.ExplorerError, match="exactly once; got 1F0 again"):
        ex.execute(program, make_layers(2), batch, loss=MSE)


def test_forward_only_runs_where_neighbours_share_a_rank(make_layers, batch):
    """Torch's eval() fails there."""
    program = ex.schedule("forward_only", n_ranks=1, n_micro_batches=2, n_chunks=3)
    assert ex.execute(program, make_layers(3), batch).parity


def test_another_batch_shape_runs_as_well(program, make_layers):
    """Torch aborts the process or passes stale rows where a schedule is used for another shape."""
    layers = make_layers(2)
    for rows in (4, 16, 8):
        assert ex.execute(program, layers, (torch.randn(rows, 8), torch.randn(rows, 8)), loss=MSE).parity


def test_a_run_after_a_failed_one_is_right(program, make_layers, failing, batch):
    """Torch's schedule gives wrong losses after an exception."""
    with pytest.raises(ex.ExplorerError, match="a fuse has blown"):
        ex.execute(program, [*make_layers(1), failing(7)], batch, loss=MSE)
    assert ex.execute(program, make_layers(2), batch, loss=MSE).parity


class Twice(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(self.layer(x).tanh())


@pytest.mark.parametrize("name", ["zb_h1", "interleaved_zb"])
def test_a_weight_that_one_stage_uses_twice_counts_once(name, batch):
    # torch 2.12 leads the gradient of the second use on into that of the first, which has its own
    program = ex.schedule(name, n_ranks=2, n_micro_batches=4)
    layers = [nn.Linear(8, 8), *(Twice() for _ in range(program.n_stages - 1))]
    run = ex.execute(program, layers, batch, loss=nn.functional.mse_loss)
    assert run.parity, repr(run.parity)


def test_a_first_stage_without_parameters_runs(program, batch):
    assert ex.execute(program, [nn.Flatten(), nn.Linear(8, 8)], batch, loss=MSE).parity


def test_bidirectional_programs_are_refused(make_layers, batch):
    placement = ex.Placement.bidirectional(2, 2)
    orders = [["0F0", "1F1", "1B1", "0B0"], ["0F1", "1F0", "1B0", "0B1"]]
    program = ex.Program.from_orders("two-way", placement, 2, orders)
    with pytest.raises(ex.ExplorerError, match="one weight copy a stage; two-way has 2 of stage 0; simulate it"):
        ex.execute(program, make_layers(2), batch, loss=MSE)


def test_asynchronous_programs_are_refused(make_layers, batch):
    program = ex.schedule("pipedream", n_ranks=2, n_micro_batches=2)
    with pytest.raises(ex.ExplorerError, match=r"one version of the weights .* pipedream keeps up to 2; run 1f1b, or"):
        ex.execute(program, make_layers(2), batch, loss=MSE)


def test_cut_sequences_and_recomputation_are_refused(make_layers, batch):
    orders = [["0F0", "0F0.1", "0B0.1", "0B0"]]
    cut = ex.Program.from_orders("cut", ex.Placement.looped(1), 1, orders, n_segments=2)
    with pytest.raises(ex.ExplorerError, match="whole sequences from stage to stage; cut cuts them into 2 segments"):
        ex.execute(cut, make_layers(1), batch, loss=MSE)
    again = ex.Program.from_orders("again", ex.Placement.looped(1), 1, [["0F0", "0R0", "0B0"]])
    with pytest.raises(ex.ExplorerError, match=r"runs F, B, I and W.*again has 0R0"):
        ex.execute(again, make_layers(1), batch, loss=MSE)


class InPlace(nn.Module):
    def forward(self, x):
        x += 1  # sigmoid's backward needs its output as it was
        return x


def test_an_operation_in_place_that_spoils_a_backward_is_refused_in_the_run_itself():
    layers = [nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Sigmoid(), InPlace())]
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    batch = torch.randn(8, 6), torch.randn(8, 6)
    with pytest.raises(RunError, match="an operation in place has changed a tensor of shape"):
        ex.execute(program, layers, batch, loss=nn.functional.mse_loss)


class Turned(nn.Module):
    """Ends with a view of what it computed: what torch cannot detach in place, and no transport sends as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x).transpose(1, 2)


class Halves(NamedTuple):
    """Of a tensor."""

    first: torch.Tensor
    second: torch.Tensor


class Halving(nn.Linear):
    def forward(self, x):
        return Halves(*super().forward(x).chunk(2, dim=1))


class Joining(nn.Linear):
    def forward(self, x):
        return super().forward(torch.cat(tuple(x), dim=1))


@pytest.mark.parametrize("backend", ["kernel", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_stage_may_end_with_several_views_by_name(program, batch, backend):
    # a named tuple is not made from one tuple, and torch takes none for the several tensors that it is
    layers = [Halving(8, 8), Joining(8, 8)]
    run = ex.execute(program, layers, batch, loss=MSE, backend=backend)
    assert run.parity, repr(run.parity)


@pytest.mark.parametrize("backend", ["kernel", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["1f1b", "zb_v", "forward_only"])
def test_a_stage_may_end_with_a_view(name, backend):
    # torch's I detaches a stage's output in place: "Can't detach views in-place"; gloo takes contiguous tensors alone
    program = ex.schedule(name, n_ranks=2, n_micro_batches=4)
    batch = torch.randn(8, 8, 8), torch.randn(8, 8, 8)
    run = ex.execute(program, [Turned() for _ in range(program.n_stages)], batch, loss=MSE, backend=backend)
    assert run.parity, repr(run.parity)


class Beside(nn.Linear):
    """Hands on what it is given and what it is, both of which depend on its weight."""

    def forward(self, x):
        own = 2 * self.weight
        return x @ own.T, own


class Both(nn.Linear):
    def forward(self, both):
        x, own = both
        return super().forward(x) + own.mean(dim=0)


@pytest.mark.parametrize("backend", ["kernel", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["zb_h1", "zb_v"])
@pytest.mark.parametrize("model", ["frozen", "without weights", "beside"])
def test_w_finds_weights_that_no_input_leads_to(model, name, backend):
    # torch's W goes on from what its I has passed on the way to the inputs, and leaves the rest out
    program = ex.schedule(name, n_ranks=2, n_micro_batches=4)
    layers = [nn.Linear(8, 8) for _ in range(program.n_stages)]
    if model == "frozen":
        layers[0].requires_grad_(False)
    elif model == "without weights":
        layers[0] = nn.Tanh()
    else:
        layers[-2:] = [Beside(8, 8), Both(8, 8)]
    batch = torch.randn(8, 8), torch.randn(8, 8)
    run = ex.execute(program, layers, batch, loss=MSE, backend=backend, n_steps=2, optimizer=_sgd)
    assert run.parity, repr(run.parity)
    one = copy.deepcopy(nn.ModuleList(layers))
    output = batch[0]
    for layer in one:
        output = layer(output)
    MSE(output, batch[1]).backward()
    first = ex.execute(program, layers, batch, loss=MSE, backend=backend)
    for number, layer in enumerate(one):
        for part, weight in layer.named_parameters():
            if weight.grad is not None:
                assert torch.allclose(first.gradients[f"{number}.{part}"], weight.grad, atol=1e-6), f"{number}.{part}"


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
