"""A run that is not the one-process run is told by which factor, and a user's own run can be asked as well."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import explorer as ex
from explorer.errors import InputError
from explorer.execute.parity import Outcome, compare
from explorer.execute.parity_factors import Counts, recognise
from explorer.execute.parity_rounding import Rounding

MSE = nn.functional.mse_loss
CROSS_ENTROPY = nn.functional.cross_entropy


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))


def gradients(
    model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], loss: object = MSE
) -> dict[str, torch.Tensor]:
    """As one process gives them, of a copy."""
    model = copy.deepcopy(model)
    loss(model(batch[0]), batch[1]).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def times(factor: float, named: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: factor * value for name, value in named.items()}


def test_the_gradients_of_one_process_are_the_same(model, batch):
    parity = ex.same_as_one_process(model, batch, MSE, gradients=gradients(model, batch), n_micro_batches=4)
    assert parity
    assert parity.reason == ""
    assert str(parity) == "True"
    assert parity.gradient_ratios == pytest.approx(dict.fromkeys(parity.gradient_ratios, 1.0))
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (4, "gradients are 4 = number of micro-batches"),
        (1 / 4, "gradients are 4 = number of micro-batches.* times too small; they are divided twice: .*eval"),
        (16, "gradients are 16 = number of micro-batches squared"),
        (1 / 16, "gradients are 16 = number of micro-batches squared.* times too small"),
        (2, "gradients are 2 times too large; backward ran twice"),
        (3, "gradients are 3 = number of replicas times too large; they are summed over data-parallel"),
        (1 / 3, "gradients are 3 = number of replicas times too small"),
        (1.25, r"gradients are 1.25 = 1 \+ 1/number of micro-batches .*kept gradients are divided again"),
        (-1, "gradients have the other sign"),
        (7.7, "gradients are 7.7 times too large; look for a factor on the loss"),
    ],
)
def test_a_usual_wrong_factor_is_named(factor, message, model, batch):
    wrong = times(factor, gradients(model, batch))
    parity = ex.same_as_one_process(model, batch, MSE, gradients=wrong, n_micro_batches=4, n_replicas=3)
    assert not parity
    with pytest.raises(InputError, match=message):
        raise InputError(parity.reason)
    assert parity.gradient_ratios["0.weight"] == pytest.approx(factor)


def test_a_sum_over_tokens_is_named_by_their_number(model):
    """Loss summed over 128 tokens and divided by them only after backward."""
    batch = torch.randn(128, 8), torch.arange(128) % 8
    wrong = times(128, gradients(model, batch, CROSS_ENTROPY))
    parity = ex.same_as_one_process(model, batch, CROSS_ENTROPY, gradients=wrong, n_micro_batches=4)
    assert parity.reason.startswith("gradients are 128 = number of tokens = number of rows times too large; ")
    assert 'the loss sums (reduction="sum") and is divided only after backward' in parity.reason


def test_a_factor_on_one_stage_names_its_parameters(model, batch):
    wrong = gradients(model, batch)
    wrong.update(times(4, {name: g for name, g in wrong.items() if name.startswith("2.")}))
    parity = ex.same_as_one_process(model, batch, MSE, gradients=wrong, n_micro_batches=4)
    assert parity.reason.startswith("gradients of 2.weight, 2.bias (2 of 4) are 4 = number of micro-batches")


def test_a_gradient_that_points_elsewhere_is_no_factor(model, batch):
    wrong = gradients(model, batch)
    wrong["0.weight"] = torch.randn_like(wrong["0.weight"])
    parity = ex.same_as_one_process(model, batch, MSE, gradients=wrong)
    assert "gradients of 0.weight differ by no common factor; losses agree: look for a recomputed" in parity.reason
    assert "0.weight" in repr(parity)


def test_a_gradient_that_is_missing_is_named(model, batch):
    wrong = gradients(model, batch)
    del wrong["2.bias"]
    parity = ex.same_as_one_process(model, batch, MSE, gradients=wrong)
    assert "gradients of 2.bias are there on one side only" in parity.reason


def test_accumulation_over_two_steps_is_what_was_asked_for(model, batch):
    twice = times(2, gradients(model, batch))
    assert ex.same_as_one_process(model, batch, MSE, gradients=twice, n_accumulated=2)
    again = times(1.25 / 2, twice)  # kept over two steps and divided again by torch: 1 + 1/M instead of 2
    parity = ex.same_as_one_process(model, batch, MSE, gradients=again, n_accumulated=2, n_micro_batches=4)
    assert "kept gradients are divided again in every step: zero_grad()" in parity.reason


def test_losses_belong_to_their_micro_batch():
    """Outputs 1 2 3 with labels 1 2 4: squared errors 0 0 1."""

    def squared(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ((output - target) ** 2).mean()

    class Same(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    batch = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[1.0], [2.0], [4.0]])
    assert ex.same_as_one_process(Same(), batch, squared, losses=[0.0, 0.0, 1.0], n_micro_batches=3)
    parity = ex.same_as_one_process(Same(), batch, squared, losses=[1.0, 0.0, 0.0], n_micro_batches=3)
    assert "losses are those of other micro-batches" in parity.reason


def token_mean_case() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], object]:
    """Losses 2 over 1 token and 90 over 9: 9.2 over all, 6 as mean of means. Ten labels, ten are left out."""
    per_token = torch.tensor([2.0] + [0.0] * 9 + [10.0] * 9 + [0.0]).reshape(20, 1)
    targets = torch.tensor([0] + [-100] * 9 + [0] * 9 + [-100])

    def mean_over_labels(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        kept = target != -100
        return output[kept].sum() / kept.sum()

    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return model, (per_token, targets), mean_over_labels


def test_a_mean_of_means_is_told_from_the_mean_over_all_tokens():
    model, batch, loss = token_mean_case()
    assert ex.same_as_one_process(model, batch, loss, losses=9.2, n_micro_batches=2)
    parity = ex.same_as_one_process(model, batch, loss, losses=[2.0, 10.0], n_micro_batches=2)
    assert "the loss over the whole batch is 9.2, and 6 is the mean over the micro-batches' own means" in parity.reason
    program = ex.schedule("1f1b", n_ranks=1, n_micro_batches=2)
    run = ex.execute(program, [model], batch, loss=loss)
    assert not run.parity
    assert "is 9.2, and 6 is the mean over the micro-batches' own means" in run.parity.reason


def test_the_global_norm_is_the_root_of_the_sum_of_squares(model, batch):
    named = gradients(model, batch)
    local = [math.sqrt(sum(float(g.norm()) ** 2 for n, g in named.items() if n[0] == s)) for s in "02"]
    parity = ex.same_as_one_process(model, batch, MSE, gradient_norm=local)
    assert parity
    assert parity.gradient_norm[0] == pytest.approx(math.hypot(*local))
    assert not ex.same_as_one_process(model, batch, MSE, gradient_norm=sum(local))
    assert math.hypot(3.62295, 3.22663) == pytest.approx(4.85149, abs=2e-5)  # published for two ranks


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(x))


def test_tied_weights_need_the_sum_of_their_gradients():
    model, batch = Tied(), (torch.arange(8) % 6, (torch.arange(8) * 5) % 6)
    apart = copy.deepcopy(model)
    apart.head.weight = nn.Parameter(apart.embedding.weight.detach().clone())
    parts = gradients(apart, batch, CROSS_ENTROPY)
    parity = ex.same_as_one_process(model, batch, CROSS_ENTROPY, gradients=parts)
    assert not parity
    assert "tied tensor: embedding.weight and head.weight needs a gradient sum" in parity.reason
    total = parts["embedding.weight"] + parts["head.weight"]
    assert ex.same_as_one_process(model, batch, CROSS_ENTROPY, gradients={"embedding.weight": total})
    assert ex.same_as_one_process(model, batch, CROSS_ENTROPY, gradients=dict.fromkeys(parts, total))
    ranks = [{"embedding.weight": total}, {"head.weight": parts["head.weight"]}]
    parity = ex.same_as_one_process(model, batch, CROSS_ENTROPY, gradients=ranks)
    assert "are parts of one gradient, and neither their sum nor their mean" in parity.reason


@pytest.mark.parametrize(("counted", "holds"), [(4, True), (5, False)])
def test_a_batch_norm_that_counted_one_forward_too_many_is_told(counted, holds, batch):
    """Torch 2.13 runs one extra forward in the first step, 2.14 does not: 5 and 4 of 4 micro-batches."""
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 8))
    theirs = copy.deepcopy(model)
    for part in batch[0].chunk(4):
        theirs(part)
    buffers = dict(theirs.named_buffers())
    buffers["0.num_batches_tracked"] = torch.tensor(counted)
    parity = ex.same_as_one_process(model, batch, MSE, buffers=buffers, n_micro_batches=4)
    assert bool(parity) == holds
    assert "one process with the whole batch counts 1" in parity.note
    assert ("the first step runs one extra forward" in parity.reason) == (not holds)


def test_a_model_that_draws_random_numbers_cannot_be_compared_and_says_so(batch):
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    other = gradients(model, batch)
    assert "no other process draws the same" in ex.same_as_one_process(model, batch, MSE, gradients=other).reason


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a comparison needs something to compare; got neither gradients nor losses"),
        ({"gradients": {"0.wait": torch.ones(8, 8)}}, r"got '0.wait'; did you mean 0.weight\?"),
        ({"gradients": {"0.weight": 3}}, "gradients are tensors; got int for 0.weight; give p.grad"),
        ({"gradients": 3}, "gradients are name → tensor, or a list of such mappings; got int"),
        ({"losses": [1.0, 2.0, 3.0], "n_micro_batches": 4}, "one for each micro-batch; got 3 for 4; give 4"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, message, model, batch):
    with pytest.raises(InputError, match=message):
        ex.same_as_one_process(model, batch, MSE, **given)


def test_a_wrong_gradient_in_an_early_step_is_seen_without_an_optimizer(program, make_layers, batch):
    """Only the last step's gradients are kept; of the others their sketches are."""

    class Double(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            y = x.clone()
            # one look, four warm-up rounds, then step 0 of three: that is what a run calls a layer for
            if y.requires_grad and 6 <= self.calls <= 9:
                y.register_hook(lambda grad: 2 * grad)
            return y

    layers = [*make_layers(1), Double(), *make_layers(1)]
    run = ex.execute(program, layers, batch, loss=MSE, n_steps=3)
    wrong = [row for row in run.parity.rows if not row.ok]
    assert {(row.what, row.step) for row in wrong} == {("gradient", 0)}


def test_a_run_of_a_layer_that_recomputes_dropout_is_right_if_it_draws_the_same(program, make_layers, batch):
    class Recomputed(nn.Module):
        def __init__(self, preserve: bool) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
            self.preserve = preserve

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=self.preserve)

    assert ex.execute(program, [Recomputed(preserve=True), *make_layers(1)], batch, loss=MSE, n_steps=2).parity
    run = ex.execute(program, [Recomputed(preserve=False), *make_layers(1)], batch, loss=MSE)
    assert not run.parity
    assert "losses agree: look for a recomputed forward" in run.parity.reason


@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_run_under_autocast_is_compared_within_its_format(n_steps, program, make_layers, batch, sgd):
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return MSE(output.float(), target)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        run = ex.execute(program, make_layers(2), batch, loss=loss, optimizer=sgd, n_steps=n_steps)
    assert run.parity
    assert len(set(run.losses)) == n_steps  # a kept cast would train on the first step's weights


def test_batch_norm_counts_every_micro_batch_once(program, batch, sgd):
    layers = [nn.Linear(8, 8), nn.BatchNorm1d(8)]
    run = ex.execute(program, layers, batch, loss=MSE, optimizer=sgd, n_steps=2)
    assert run.parity
    assert run.state_dict()["1.num_batches_tracked"] == 2 * program.n_micro_batches
    assert {row.name for row in run.parity.rows if row.what == "buffer"} >= {"1.running_mean", "1.num_batches_tracked"}


def test_an_output_that_is_off_by_a_ten_thousandth_is_seen():
    weights = {"weight": torch.ones(2)}
    right = Outcome([], {}, weights, torch.ones(64))
    assert compare(Outcome([], {}, weights, torch.ones(64) * (1 + 1e-6)), right, "").holds
    assert not compare(Outcome([], {}, weights, torch.ones(64) * (1 + 1e-4)), right, "").holds


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float64, 1e-12), (torch.float32, 1e-3), (torch.bfloat16, 0.11)])
def test_what_rounding_may_do_follows_the_format_and_the_size(dtype, digits):
    epsilon = torch.finfo(dtype).eps
    small, large = Rounding(epsilon, 4, 8), Rounding(epsilon, 400, 8192)
    assert epsilon <= small.of_loss() <= small.of_tensors() <= large.of_tensors() < digits
    assert small.of_tensors(step=3) >= small.of_tensors()


def test_coinciding_factors_are_all_named():
    factor = recognise(4.0, Counts(n_micro_batches=4, n_replicas=4))
    assert factor.words == "number of micro-batches = number of replicas"


def test_a_parity_is_a_frame_of_rows(program, make_layers, batch):
    frame = ex.execute(program, make_layers(2), batch, loss=MSE).parity.to_frame()
    assert {"loss", "gradient", "gradient norm", "parameter"} <= set(frame.what)
    assert frame.ok.all()


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("losses", {}, "losses is one number, or a list of numbers; got {}"),
        ("losses", "1.5", "losses is one number, or a list of numbers; got '1.5'"),
        ("losses", [], "losses is one number, or a list of numbers; got \\[\\]"),
        ("gradient_norm", "x", "gradient_norm is one number, or a list of numbers; got 'x'"),
        ("gradient_norm", [1, None], "gradient_norm is one number, or a list of numbers; got \\[1, None\\]"),
        ("buffers", 3, "buffers are name → tensor; got 3; give dict"),
        ("buffers", {"x": 3}, "buffers are name → tensor; got 3 for x; give dict"),
        ("n_accumulated", 0, "n_accumulated is a whole number of at least 1; got 0; try 1"),
        ("n_accumulated", "x", "n_accumulated is a whole number of at least 1; got 'x'; try 1"),
        ("n_replicas", -1, "n_replicas is a whole number of at least 1; got -1; try 1"),
    ],
)
def test_what_is_none_of_a_steps_numbers_is_refused_in_a_sentence(argument, value, message, model, batch):
    with pytest.raises(InputError, match=message) as refused:
        ex.same_as_one_process(model, batch, MSE, **{"gradients": gradients(model, batch), argument: value})
    assert refused.value.argument == argument


def test_losses_may_come_as_tensors(model, batch):
    loss = MSE(model(batch[0]), batch[1]).detach()
    assert ex.same_as_one_process(model, batch, MSE, losses=loss)
    assert ex.same_as_one_process(model, batch, MSE, losses=[loss])


def learned(model, inputs, targets, loss):
    """Name → gradient of the whole batch, as any script has them."""
    model.zero_grad()
    loss(model(inputs), targets).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters(remove_duplicate=False)}


@pytest.mark.parametrize("names", ["first", "both"])
def test_a_weight_under_two_names_of_one_sequence_is_one_weight(names):
    table, head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
    head.weight = table.weight
    model, words, targets = nn.Sequential(table, nn.Linear(8, 8), head), torch.arange(11), torch.arange(11).flip(0)
    found = learned(model, words, targets, CROSS_ENTROPY)
    if names == "first":
        del found["2.weight"]
    parity = ex.same_as_one_process(model, (words, targets), CROSS_ENTROPY, gradients=found)
    assert parity, repr(parity)
    wrong = {name: gradient / 2 for name, gradient in found.items() if name != "2.weight"}
    assert "2 times too small" in str(ex.same_as_one_process(model, (words, targets), CROSS_ENTROPY, gradients=wrong))


def test_losses_that_are_sums_add_up(batch):
    model, loss = nn.Sequential(nn.Linear(8, 8)), nn.MSELoss(reduction="sum")
    each = [loss(model(x), y).item() for x, y in zip(*(one.chunk(4) for one in batch), strict=True)]
    case = {"n_micro_batches": 4, "gradients": learned(model, *batch, loss)}
    for losses in (each, sum(each)):
        parity = ex.same_as_one_process(model, batch, loss, losses=losses, **case)
        assert parity, repr(parity)
    assert not ex.same_as_one_process(model, batch, loss, losses=sum(each) / 4, **case)


def test_zeros_of_a_parameter_that_nothing_depends_on_are_no_gradient(batch):
    model = nn.Sequential(nn.Linear(8, 8))
    model[0].register_parameter("unused", nn.Parameter(torch.ones(3)))
    found = {**learned(model, *batch, MSE), "0.unused": torch.zeros(3)}
    assert ex.same_as_one_process(model, batch, MSE, gradients=found)


def test_gradients_that_cannot_be_told_from_rounding_are_named(batch):
    class Dimmed(nn.Linear):
        def forward(self, x):
            return super().forward(1e-7 * x)

    model = nn.Sequential(nn.Linear(8, 8), Dimmed(8, 8))
    found = learned(model, *batch, MSE)
    found["0.weight"] = -3 * found["0.weight"]
    parity = ex.same_as_one_process(model, batch, MSE, gradients=found)
    assert "are not judged: 0.weight, 0.bias" in repr(parity)
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    assert "are not judged: 0.weight, 0.bias" in repr(ex.execute(program, model, batch, loss=MSE).parity)


def test_gradients_are_compared_within_inference_mode_too(batch):
    model = nn.Sequential(nn.Linear(8, 8))
    found = learned(model, *batch, MSE)
    with torch.inference_mode():
        assert ex.same_as_one_process(model, batch, MSE, gradients=found)
