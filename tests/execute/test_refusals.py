"""What cannot run is refused in one sentence that says what would do."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import InputError, ModelError, RunError

MSE = nn.functional.mse_loss


class Giving(nn.Module):
    """A layer that gives something of its own."""

    def __init__(self, given):
        super().__init__()
        self.given = given

    def forward(self, x):
        return self.given


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backend": "mpi"}, "a backend is one of kernel, processes, torchrun; got 'mpi'; try kernel"),
        ({"n_steps": 0}, "n_steps is a whole number of at least 1; got 0; try 1"),
        ({"loss": None}, "1f1b trains, so it needs a loss; got None"),
        ({"loss": lambda a, b: (a - b) ** 2}, r"one number, a tensor of shape \(\); got a tensor of shape \(4, 8\)"),
        ({"loss": lambda a, b: 3}, r"one number, a tensor of shape \(\); got int"),
        ({"loss": lambda a, b: MSE(a.detach(), b)}, "does not depend on any parameter"),
        ({"loss": lambda a, b: nn.functional.cross_entropy(a, b)[0]}, "the loss takes the model's outputs"),
        ({"optimizer": "adam"}, "None or a callable; got str 'adam'; give a callable"),
        ({"optimizer": lambda parameters: "sgd"}, "gives a torch.optim.Optimizer; got str"),
        (
            {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=-1)},
            "it raised ValueError: Invalid learning",
        ),
        ({"split_points": ["7"]}, "a split point names a layer; got '7'; this model has 0, 1"),
        ({"split_points": ["0"]}, "the first stage begins by itself"),
        ({"split_points": []}, "the program has 2 stages; got 0 split points; name 1"),
    ],
)
def test_arguments_that_cannot_be_are_refused(changes, message, program, make_layers, batch):
    with pytest.raises(InputError, match=message):
        ex.execute(program, make_layers(2), batch, **{"loss": MSE, **changes})


def test_an_optimizer_of_the_callers_parameters_is_refused(program, make_layers, batch):
    layers = make_layers(2)
    bound = torch.optim.SGD(layers[0].parameters(), lr=0.1)
    with pytest.raises(ModelError, match="got a SGD bound to the caller's parameters; give a callable") as caught:
        ex.execute(program, layers, batch, loss=MSE, optimizer=bound)
    assert caught.value.argument == "optimizer"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ([nn.Linear(8, 8)], "every stage needs a layer of its own; got 2 stages and 1 layers"),
        (nn.Sequential(), "a model has layers to cut; got none; give one with a layer for each stage"),
        ([], "a list of layers holds nn.Modules; got an empty one"),
        ([nn.Linear(8, 8), len], "a list of layers holds nn.Modules; got a builtin_function_or_method among them"),
        (3, "a model is a list of layers, an nn.Sequential, or any nn.Module with split_points; got int"),
        (nn.Bilinear(8, 8, 8), "got Bilinear without; name the submodules"),
        ([nn.Linear(8, 8), nn.Linear(7, 8)], r"layer 1 \(Linear, stage 1\) does not take what layer 0 gives, \(4, 8\)"),
        ([nn.Conv2d(3, 8, 3), nn.Linear(7, 8)], r"layer 0 \(Conv2d, stage 0\) does not take what the batch gives"),
        (
            [nn.Linear(8, 8), Giving(None)],
            "tensors to each other, and the last one to the loss; stage 1, .* layer 1, gives NoneType; give",
        ),
        (
            [Giving(()), nn.Linear(8, 8)],
            "tensors to each other, and the last one to the loss; stage 0, .* layer 0, gives nothing; give",
        ),
        (
            [nn.Linear(8, 8), nn.LSTM(8, 8)],
            "tensors to each other, and the last one to the loss; stage 1, .* layer 1, gives tuple",
        ),
    ],
)
def test_models_that_cannot_be_cut_or_do_not_fit_are_refused(model, message, program, batch):
    with pytest.raises(ModelError, match=message):
        ex.execute(program, model, batch, loss=MSE)


def test_a_model_or_loss_for_one_size_of_batch_is_told_of_where_the_whole_batch_is_compared(
    program, make_layers, batch
):
    def loss(output, target):
        return MSE(output.view(4, 8), target)

    message = (
        r"in one piece; fed the whole batch at once, that failed: RuntimeError: shape '\[4, 8\]' .*; let model and"
    )
    with pytest.raises(RunError, match=message) as caught:
        ex.execute(program, make_layers(2), batch, loss=loss)
    assert len(caught.value.trace.events)


def test_a_loss_that_fails_only_where_the_run_is_compared_is_told_of(program, batch):
    calls = []

    def loss(output, target):
        calls.append(1)
        if len(calls) == limit[0]:
            raise ValueError("enough")
        return MSE(output, target)

    layers = [nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))]
    limit = [-1]
    ex.execute(program, layers, batch, loss=loss)
    limit, calls = [len(calls)], []
    with pytest.raises(RunError, match="fed the same micro-batches, that failed: ValueError: enough; mend it there"):
        ex.execute(program, layers, batch, loss=loss)


def test_a_model_whose_copy_is_something_else_is_refused(program, batch):
    class Odd(nn.Sequential):
        def __reduce__(self):
            return int, ()

    with pytest.raises(ModelError, match="works on a copy of the model; a copy of Odd is int; mend its __reduce__"):
        ex.execute(program, Odd(nn.Linear(8, 8), nn.Linear(8, 8)), batch, loss=MSE)


def test_weights_shared_between_stages_are_refused(program, batch):
    shared = nn.Linear(8, 8)
    with pytest.raises(ModelError, match=r"0.weight of stage 0 and 1.weight of stage 1 are the same tensor"):
        ex.execute(program, [shared, shared], batch, loss=MSE)


def test_a_value_that_goes_around_a_stage_is_refused(program, batch):
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.leave = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.leave(self.enter(x)) + x

    with pytest.raises(ModelError, match=r"what the input x gives, \(4, 8\), 128 bytes a micro-batch; move the split"):
        ex.execute(program, Skip(), batch, loss=MSE, split_points=["leave"])


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (torch.zeros(6, 8), torch.zeros(6, 8), "got 6 and 4; try 3 or 6 micro-batches, or a batch of 8"),
        (torch.zeros(8, 8), torch.zeros(4, 8), "got 8 inputs and 4 targets; cut both to 4"),
        (torch.zeros(8, 8), None, "a loss compares with targets; got none"),
        ([1, 2], torch.zeros(8, 8), "inputs and targets are tensors; got int"),
        ((torch.zeros(8, 8), torch.zeros(4, 8)), torch.zeros(8, 8), r"of one batch size; got \[8, 4\]"),
    ],
)
def test_batches_that_do_not_fit_are_refused(inputs, targets, message, program, make_layers):
    with pytest.raises(ModelError, match=message):
        ex.execute(program, make_layers(2), (inputs, targets), loss=MSE)


def test_a_batch_is_a_pair(program, make_layers):
    with pytest.raises(ModelError, match=r"a batch is \(inputs, targets\); got 3 values"):
        ex.execute(program, make_layers(2), (1, 2, 3), loss=MSE)


@pytest.mark.parametrize(("at", "when"), [(1, "before the first step"), (3, "warming up"), (7, "step 0")])
def test_a_layer_that_raises_is_named_with_rank_stage_and_micro_batch(at, when, program, failing, batch):
    with pytest.raises(RunError, match=rf"1F\d \(forward of micro-batch \d in stage 1 on rank 1, {when}\)") as caught:
        ex.execute(program, [nn.Linear(8, 8), failing(at)], batch, loss=MSE)
    assert "failed in layer 1: KeyError: 'a fuse has blown'" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "\n" not in str(caught.value)


def test_a_backward_that_raises_is_named(program, batch):
    class Broken(nn.Module):
        def forward(self, x):
            x.register_hook(self.fail)
            return x * 1

        def fail(self, grad):
            raise ArithmeticError("no gradient today")

    with pytest.raises(RunError, match=r"1B0 .backward of micro-batch 0 .* failed in layer 1: ArithmeticError"):
        ex.execute(program, [nn.Linear(8, 8), Broken()], batch, loss=MSE)


def test_a_loss_that_is_no_number_ends_the_run(program, make_layers, batch, sgd):
    calls = []

    def spoilt(output, target):
        calls.append(0)
        return MSE(output, target) * (float("nan") if len(calls) > 6 else 1.0)

    with pytest.raises(RunError, match=r"finite number; 1F\d .* on rank 1, step 0\) gave nan; look at the inputs"):
        ex.execute(program, make_layers(2), batch, loss=spoilt, optimizer=sgd)


def test_ready_models_are_refused_by_name_and_size():
    with pytest.raises(InputError, match=r"one of mlp, conv, gpt; got 'gtp'; did you mean gpt\?"):
        ex.ready_model("gtp", n_stages=2, n_micro_batches=2)
    with pytest.raises(InputError, match="one of small, medium, large; got 'huge'"):
        ex.ready_model("mlp", n_stages=2, n_micro_batches=2, size="huge")


class Doubled(nn.Linear):
    """A layer whose forward is patched upon the object."""

    def __init__(self):
        super().__init__(4, 4)
        inner = super().forward
        self.forward = lambda x: inner(x) * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hooks": ex.Stop()}, "hooks is a list of Hook objects; got Stop"),
        ({"hooks": [ex.Stop]}, "got the class Stop"),
        ({"hooks": None}, "hooks is a list of Hook objects; got NoneType"),
        ({"links": 3}, "links is None or Costs; got int"),
        ({"split_points": 3}, "split_points is a list of names; got 3"),
        ({"clock": 3}, "a clock is called for the seconds now, a finite number; got 3"),
        ({"clock": lambda: float("nan")}, "a finite number; got nan"),
    ],
)
def test_arguments_of_another_kind_are_refused_by_name(arguments, message):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    layers, batch = [nn.Linear(4, 4), nn.Linear(4, 4)], (torch.ones(4, 4), torch.zeros(4, 4))
    with pytest.raises(InputError, match=message) as caught:
        ex.execute(program, layers, batch, loss=nn.functional.mse_loss, **arguments)
    assert caught.value.argument == next(iter(arguments))


def test_an_optimizer_of_other_parameters_is_refused():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    layers, batch = [nn.Linear(4, 4), nn.Linear(4, 4)], (torch.ones(4, 4), torch.zeros(4, 4))
    optimizer = lambda parameters: torch.optim.SGD(layers[0].parameters(), lr=0.1)  # noqa: E731
    with pytest.raises(ModelError, match="this one holds others"):
        ex.execute(program, layers, batch, loss=nn.functional.mse_loss, optimizer=optimizer)


def test_a_forward_patched_upon_a_layer_is_refused_for_it_would_reach_the_callers():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    batch = torch.ones(4, 4), torch.zeros(4, 4)
    with pytest.raises(ModelError, match="the module 1 has one of its own; give it a class"):
        ex.execute(program, [nn.Linear(4, 4), Doubled()], batch, loss=nn.functional.mse_loss)


@pytest.mark.parametrize("of", ["the model", "a head"])
def test_a_loss_with_parameters_is_refused_for_a_run_trains_a_copy(program, batch, of):
    # they would get no update, or the copy not theirs, and the reference would not tell: it has the same loss
    layers, head = [nn.Linear(8, 8), nn.Linear(8, 8)], nn.Linear(8, 8)
    held = layers[0] if of == "the model" else head

    def loss(output, target):
        return nn.functional.mse_loss(output, target) + 0.1 * held.weight.pow(2).sum()

    for function in (ex.execute, ex.preflight):
        said = r"depends on 1 parameter besides, the first of shape \(8, 8\); .* weight_decay"
        if function is ex.execute:
            with pytest.raises(ModelError, match=said):
                function(program, layers, batch, loss=loss)
        else:
            assert re.search(said, " ".join(repr(function(program, layers, batch, loss=loss)).split()))
    assert held.weight.grad is None


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (
            lambda: nn.LazyLinear(8),
            r"got 0\.weight, which a lazy module makes .*; call the model once on a micro-batch",
        ),
        (lambda: nn.Linear(8, 8, device="meta"), r"got 0\.weight on device meta; .*to_empty"),
    ],
)
def test_weights_that_are_not_there_are_refused(program, batch, layer, said):
    # a lazy module would make others in the copy that trains than in the one it is compared with
    with pytest.raises(ModelError, match=said):
        ex.execute(program, [layer(), nn.Linear(8, 8)], batch, loss=nn.functional.mse_loss)


class Held(nn.Linear):
    """Holds what cannot be copied."""

    def __init__(self) -> None:
        super().__init__(8, 8)
        self.numbers = (number for number in range(3))


def made_by(make) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of its own parts
        return make(nn.Linear(8, 8))


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (
            Held,
            r"cannot be copied: TypeError: cannot pickle 'generator' object; give the class of what cannot a __deep",
        ),
        (
            lambda: made_by(torch.jit.script),
            "the module 0 is scripted, and tells nobody when it runs; give the one it was made of",
        ),
        (
            lambda: made_by(torch.compile),
            r"0 is what torch\.compile gave; .* compile it by module\.compile\(\)",
        ),
        (lambda: nn.Embedding(8, 8, sparse=True), "as dense ones; 0 has sparse=True; give it sparse=False"),
    ],
)
def test_layers_that_nobody_can_follow_are_refused_before_anything_runs(program, batch, layer, said, as_list):
    layers = [layer(), nn.Linear(8, 8)]
    model = layers if as_list else nn.Sequential(*layers)
    with pytest.raises(ModelError, match=said):
        ex.execute(program, model, batch, loss=nn.functional.mse_loss)
    assert not ex.preflight(program, model, batch, loss=nn.functional.mse_loss).ok


def test_a_run_within_inference_mode_learns_all_the_same(program):
    with torch.inference_mode():
        batch = torch.randn(8, 8), torch.randn(8, 8)
        layers = [nn.Linear(8, 8), nn.Linear(8, 8)]
        assert ex.preflight(program, layers, batch, loss=nn.functional.mse_loss).ok
        assert ex.execute(program, layers, batch, loss=nn.functional.mse_loss).parity


class Counting(nn.Module):
    """A loss that counts what it sees, as one with a running mean does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, output, target):
        self.seen += 1
        return nn.functional.mse_loss(output, target)


@pytest.mark.parametrize("backend", ["kernel", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_loss_that_is_a_module_stays_as_it_is(program, batch, backend):
    loss = Counting()
    assert ex.execute(program, [nn.Linear(8, 8), nn.Linear(8, 8)], batch, loss=loss, backend=backend).parity
    assert not loss.seen
