"""Models cut by torch's tracer: flat stages over the model's own tensors, the same in processes as in the kernel."""

from __future__ import annotations

import copy
import sys

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import ModelError
from explorer.execute.by_value import from_bytes, to_bytes
from explorer.execute.cutting import cut

MSE = nn.functional.mse_loss
in_processes = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks workers")]
BACKENDS = ["kernel", pytest.param("processes", marks=in_processes)]


class Block(nn.Module):
    """A skip within it, two ways apart and together, a buffer that is kept and one that is not."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.register_buffer("scale", torch.full((width,), 2.0))
        self.register_buffer("shift", torch.ones(width), persistent=False)

    def forward(self, x):
        left, right = self.inner(x).chunk(2, dim=-1)
        return self.norm(torch.cat([right, left], dim=-1)).relu() * self.scale + x + self.shift


class Net(nn.Module):
    def __init__(self, *, middle: nn.Module | None = None) -> None:
        super().__init__()
        self.enter, self.first, self.second = nn.Linear(8, 8), Block(8), Block(8)
        self.middle, self.leave = middle or nn.Identity(), nn.Linear(8, 8)

    def forward(self, x):
        x = self.second(self.first(self.enter(x)))
        return self.leave(self.leave(self.middle(x)).tanh())  # which is called twice


@pytest.mark.parametrize("middle", [None, nn.Dropout(0.5)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_training_equals_one_process(backend, middle, program, batch, sgd):
    model = Net(middle=middle)
    arguments = {"loss": MSE, "optimizer": sgd, "n_steps": 3, "split_points": ["second"]}
    run = ex.execute(program, model, batch, backend=backend, **arguments)
    assert run.parity, repr(run.parity)
    assert run.gradients.keys() == dict(model.named_parameters()).keys()
    assert run.state_dict().keys() == model.state_dict().keys()
    assert run.state_dict()["second.norm.num_batches_tracked"] == 3 * program.n_micro_batches
    kernel = ex.execute(program, model, batch, **arguments)
    assert run.losses == pytest.approx(kernel.losses, rel=1e-5)


@pytest.mark.slow
def test_four_stages_on_two_ranks_run_split_backwards_in_processes(batch, sgd):
    program = ex.schedule("interleaved_zb", n_ranks=2, n_micro_batches=4)
    model, points = Net(middle=nn.Linear(8, 8)), ["first", "second", "middle"]
    run = ex.execute(
        program, model, batch, loss=MSE, optimizer=sgd, n_steps=2, split_points=points, backend="processes"
    )
    assert run.parity, repr(run.parity)


@pytest.mark.slow
def test_a_forward_only_program_gives_a_traced_models_outputs(batch):
    model = Net().eval()
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=4)
    run = ex.execute(program, model, batch[0], split_points=["second"], backend="processes")
    assert torch.allclose(run.outputs, model(batch[0]), atol=1e-6)


@pytest.mark.slow
def test_two_inputs_come_to_the_first_stage_in_a_process(program, batch, sgd):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right, self.leave = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x, y):
            return self.leave(self.left(x) - self.right(y).tanh())

    inputs = batch[0], torch.randn(16, 8)
    run = ex.execute(
        program, Pair(), (inputs, batch[1]), loss=MSE, optimizer=sgd, split_points=["leave"], backend="processes"
    )
    assert run.parity, repr(run.parity)


def in_a_notebook_cell() -> type[nn.Module]:
    """A class that no other process can import, made of code in `__main__`."""

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.leave = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.leave(x + self.enter(x).relu())

    Cell.__module__, Cell.__qualname__ = "__main__", "Cell"
    return Cell


@pytest.mark.slow
def test_a_model_of_a_notebook_cell_is_cut_here_and_runs_there(program, batch, sgd):
    run = ex.execute(
        program, in_a_notebook_cell()(), batch, loss=MSE, optimizer=sgd, split_points=["leave"], backend="processes"
    )
    assert run.parity, repr(run.parity)


def trained_plainly(model, batch, *, n_steps):
    """The losses of the caller's own model, fed the same micro-batches."""
    model, losses = copy.deepcopy(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(n_steps):
        optimizer.zero_grad()
        parts = [MSE(model(x), y) / 4 for x, y in zip(batch[0].chunk(4), batch[1].chunk(4), strict=True)]
        torch.stack(parts).sum().backward()
        optimizer.step()
        losses.append(sum(part.item() for part in parts))
    return losses


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_tied_within_a_stage_add_their_gradients_up(backend, program, batch, sgd):
    model = Net(middle=nn.Linear(8, 8))
    model.middle.weight = model.leave.weight
    run = ex.execute(
        program, model, batch, loss=MSE, optimizer=sgd, n_steps=2, split_points=["second"], backend=backend
    )
    assert run.losses == pytest.approx(trained_plainly(model, batch, n_steps=2), rel=1e-5)
    assert torch.equal(run.state_dict()["middle.weight"], run.state_dict()["leave.weight"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_tied_between_stages_are_refused(backend, program, batch):
    model = Net()
    model.leave.weight = model.enter.weight
    with pytest.raises(ModelError, match=r"of stage 0 and .*weight of stage 1 are the same tensor"):
        ex.execute(program, model, batch, loss=MSE, split_points=["second"], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_value_that_goes_around_a_stage_is_refused(backend, batch):
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            early = self.a(x)
            return self.c(self.b(early)) + early

    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=4)
    with pytest.raises(ModelError, match=r"stage 2 also needs what stage 0 gives, \(4, 8\), 128 bytes a micro-batch"):
        ex.execute(program, Skip(), batch, loss=MSE, split_points=["b", "c"], backend=backend)


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda x: {"logits": x}, "gives dict; give a tensor or a tuple of tensors"),
        (lambda x: [x], "gives list; give a tensor"),
        (lambda x: (x, None), "gives NoneType; give a tensor"),
        (lambda x: None, "gives NoneType; give a tensor"),
    ],
)
def test_a_model_that_gives_other_things_than_tensors_is_refused_before_it_runs(give, message, program, batch):
    class Odd(Net):
        def forward(self, x):
            return give(super().forward(x))

    with pytest.raises(ModelError, match=f"stages hand tensors to each other; Odd {message}"):
        ex.execute(program, Odd(), batch, loss=MSE, split_points=["second"])


def test_what_a_forward_raises_is_told_and_not_what_the_tracer_makes_of_it(program, batch):
    class Odd(Net):
        def forward(self, x):
            raise ValueError("the model's own words")

    with pytest.raises(ModelError, match="Odd cannot be: ValueError: the model's own words; give a list"):
        ex.execute(program, Odd(), batch, loss=MSE, split_points=["second"])


def test_the_graph_of_a_tracer_that_fails_is_not_written_out(program, batch, capfd):
    class Odd(Net):
        def forward(self, x):
            return super().forward(x * 2 if x.sum() > 0 else x)

    with pytest.raises(ModelError, match=r"Odd cannot be: .* data-dependent") as caught:
        ex.execute(program, Odd(), batch, loss=MSE, split_points=["second"])
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_what_a_model_writes_while_it_is_traced_is_passed_on(program, batch, capsys):
    class Talkative(Net):
        def forward(self, x):
            sys.stderr.write("its own words\n")
            return super().forward(x)

    ex.execute(program, Talkative(), batch, loss=MSE, split_points=["second"])
    assert "its own words" in capsys.readouterr().err


def test_a_stage_shares_the_models_tensors_under_the_models_names(batch):
    model = cut(Net(), 2, split_points=["second"], sample=(batch[0],))
    whole = {id(tensor): name for name, tensor in (*model.whole.named_parameters(), *model.whole.named_buffers())}
    for stage in model.stages:
        for name, tensor in (*stage.named_parameters(), *stage.named_buffers()):
            assert whole[id(tensor)] == name


def test_a_stage_that_was_sent_does_the_same(batch):
    model = cut(Net().eval(), 2, split_points=["second"], sample=(batch[0],))
    sent = from_bytes(to_bytes((model.stages[1], dict(model.stages[1].named_parameters())), what="model"))
    stage, parameters = sent
    assert torch.equal(stage(batch[0]), model.stages[1](batch[0]))
    assert stage.state_dict().keys() == model.stages[1].state_dict().keys()
    assert all(parameters[name] is parameter for name, parameter in stage.named_parameters())
