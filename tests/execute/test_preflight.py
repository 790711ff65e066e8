"""One look before a run says what would be refused, and what may not be meant as it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import explorer as ex
from explorer.errors import InputError

MSE = nn.functional.mse_loss


def linear(n: int) -> list[nn.Module]:
    return [nn.Linear(8, 8) for _ in range(n)]


def rows(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, 8), torch.randn(n, 8)


def sentences(report: ex.Report, severity: str) -> str:
    return "\n".join(finding.sentence for finding in report.findings if finding.severity == severity)


def numbers(name: str, n_ranks: int, n_micro_batches: int, **more: object) -> dict[str, object]:
    return {"name": name, "n_ranks": n_ranks, "n_micro_batches": n_micro_batches, **more}


def test_a_run_with_nothing_against_it_is_ready(program, make_layers, batch, sgd):
    report = ex.preflight(program, make_layers(2), batch, loss=MSE, optimizer=sgd)
    assert report.ok
    assert report.errors == report.warnings == ()
    assert repr(report).startswith("Report: ready to run, 0 errors, 0 warnings\n")
    assert "2 layers on 2 stages: 1 1" in sentences(report, "note")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (numbers("dualpipev", 4, 7), "at least 8, twice n_ranks; got 7; try 8"),
        (numbers("1f1b", 8, 1, dialect="torch"), "torch's 1F1B needs n_micro_batches of at least 8; got 1; try 8"),
        (numbers("interleaved_1f1b", 4, 10, n_chunks=2), "got 10 .* try 8 or 12"),
        ({"n_ranks": 2}, "a schedule is made of its name and numbers; got n_ranks; try"),
        (numbers("1f1p", 2, 2), "did you mean 1f1b?"),
    ],
)
def test_a_schedules_own_refusal_is_a_finding(spec, message):
    report = ex.preflight(spec, linear(8), rows(40), loss=MSE)
    assert not report.ok
    with pytest.raises(InputError, match=message):
        raise InputError(report.errors[0].sentence)


def test_the_number_of_micro_batches_and_the_batch_are_both_found(make_layers):
    report = ex.preflight(numbers("dualpipev", 4, 7), make_layers(8), rows(16), loss=MSE)
    found = sentences(report, "error")
    assert "got 7; try 8" in found
    assert "got 16 and 7; try 8 or 4 micro-batches, or a batch of 14" in found
    assert report.errors[0].legal == (8,)
    assert report.errors[0].argument == "n_micro_batches"


def test_a_dialect_may_be_asked_for():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=2)
    assert ex.preflight(program, linear(4), rows(8), loss=MSE).ok
    report = ex.preflight(program, linear(4), rows(8), loss=MSE, dialect="torch")
    assert "needs n_micro_batches of at least 4; got 2; try 4" in sentences(report, "error")


def test_fewer_micro_batches_than_stages_are_told_with_both_bubbles():
    """3/11 and 3/19: (P−1)/(vM+P−1) for P = 4, v = 2 (Narayanan et al. 2021, section 2.2.2)."""
    report = ex.preflight(numbers("interleaved_1f1b", 4, 4, n_chunks=2), linear(8), rows(8), loss=MSE)
    assert "m=4 is below total stages 8" in sentences(report, "warning")
    assert f"{3 / 11:.1%} of the ranks' time is idle, {3 / 19:.1%} with 8" in sentences(report, "warning")


def test_what_torchs_own_class_refuses_and_a_run_does_is_a_warning():
    report = ex.preflight(numbers("1f1b", 8, 1), linear(8), rows(8), loss=MSE)
    assert report.ok
    assert "got 1; this run does it all the same; for torch's own try 8" in sentences(report, "warning")
    assert ex.preflight(numbers("gpipe", 2, 2), linear(2), rows(8), loss=MSE).warnings == ()


def test_a_batch_that_is_not_cut_evenly_names_the_nearest(make_layers):
    report = ex.preflight(numbers("gpipe", 2, 3), make_layers(2), rows(8), loss=MSE)
    assert "got 8 and 3; try 4 or 2 micro-batches, or a batch of 9" in sentences(report, "error")


def test_errors_of_the_batch_and_of_the_model_come_together():
    report = ex.preflight(numbers("gpipe", 4, 3), linear(2), rows(8), loss=MSE)
    found = sentences(report, "error")
    assert "got 8 and 3" in found
    assert "every stage needs a layer of its own; got 4 stages and 2 layers; try 4 stages" not in found
    assert "every stage needs a layer of its own; got 4 stages and 2 layers; try 2 stages" in found


def test_no_layer_is_lost_in_a_split():
    """40 layers on 16 stages: 8 of 3 and 8 of 2, where 40 // 16 a stage would lose 8."""
    report = ex.preflight(numbers("gpipe", 16, 16), linear(40), rows(16), loss=MSE)
    assert "40 layers on 16 stages: 3 3 3 3 3 3 3 3 2 2 2 2 2 2 2 2" in sentences(report, "note")


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.unused = linear(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.a(x)
        return self.c(self.b(h)) + h


def test_skip_connections_are_found_with_their_bytes():
    report = ex.preflight(numbers("gpipe", 3, 4), Skip(), rows(16), loss=MSE, split_points=["b", "c"])
    found = sentences(report, "error")
    assert f"stage 2 also needs what stage 0 gives, (4, 8), {4 * 8 * 4} bytes a micro-batch" in found
    assert report.errors[0].argument == "split_points"


def test_a_parameter_that_no_stage_uses_is_told():
    report = ex.preflight(numbers("gpipe", 1, 4), nn.Sequential(Skip()), rows(16), loss=MSE)
    assert report.ok
    inner = ex.preflight(numbers("gpipe", 2, 4), WithSpare(), rows(16), loss=MSE, split_points=["leave"])
    assert "spare.weight, spare.bias in none, for the forward does not use it" in sentences(inner, "warning")


class WithSpare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave, self.spare = linear(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(self.enter(x))


class Enter(nn.Linear):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward(x), x


class Through(nn.Linear):
    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward(pair[0]), pair[1]


class Leave(nn.Linear):
    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return super().forward(pair[0]) + pair[1]


def test_a_skip_connection_may_travel_in_a_tuple_and_its_bytes_are_told():
    layers = [Enter(8, 8), Through(8, 8), Leave(8, 8)]
    report = ex.preflight(numbers("1f1b", 3, 4), layers, rows(16), loss=MSE)
    assert report.ok
    assert "stage 1 hands on 128 bytes a micro-batch as it got them" in sentences(report, "note")
    assert ex.execute(ex.schedule("1f1b", n_ranks=3, n_micro_batches=4), layers, rows(16), loss=MSE).parity


def test_tied_parameters_over_stages_are_refused_before_the_first_step():
    embedding, head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
    head.weight = embedding.weight
    batch = torch.arange(8) % 6, torch.arange(8) % 6
    report = ex.preflight(numbers("gpipe", 2, 2), [embedding, head], batch, loss=nn.functional.cross_entropy)
    assert "0.weight of stage 0 and 1.weight of stage 1 are the same tensor" in sentences(report, "error")
    assert "gradients would have to be summed over both" in sentences(report, "error")


def test_batch_dependent_layers_and_losses_are_told():
    layers = [nn.Linear(8, 8), nn.BatchNorm1d(8)]
    report = ex.preflight(numbers("1f1b", 2, 4), layers, rows(16), loss=nn.MSELoss(reduction="sum"))
    found = sentences(report, "warning")
    assert "1 (BatchNorm1d) sees 4 rows 4 times a step instead of 16 once, and counts 4 batches" in found
    assert "this one sums over them, so a step's loss and gradients are 1/4 of the whole batch's" in found
    assert layers[1].num_batches_tracked == 0  # the caller's layer has not run


def test_a_loss_that_compares_rows_with_each_other_is_told():
    def contrast(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output @ output.T, torch.arange(len(output)))

    report = ex.preflight(numbers("1f1b", 2, 4), linear(2), rows(16), loss=contrast)
    assert "for its rows twice: it looks at the batch" in sentences(report, "warning")


def test_labels_that_are_left_out_unevenly_are_told():
    targets = torch.arange(16) % 8
    targets[:3] = -100
    report = ex.preflight(
        numbers("1f1b", 2, 4), linear(2), (torch.randn(16, 8), targets), loss=nn.functional.cross_entropy
    )
    assert "micro-batches with 1 to 4 labels that are not -100" in sentences(report, "warning")


def test_offsets_of_packed_sequences_are_told():
    """Offsets 0 3 5 7 10 cut in two give 0 3 5 and 7 10, where the second must be 0 2 5."""
    offsets = torch.tensor([0, 3, 5, 7, 10, 12])
    layers = [Take(), nn.Linear(8, 8)]
    report = ex.preflight(numbers("gpipe", 2, 2), layers, ((torch.randn(6, 8), offsets), torch.randn(6, 8)), loss=MSE)
    assert "looks like offsets and is cut into [0, 3, 5] and [7, 10, 12]" in sentences(report, "warning")


class Take(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return pair[0] * 2


def test_an_input_with_its_batch_on_another_axis_is_told_which():
    batch = (torch.randn(2, 8), torch.zeros(3, 2, 5)), torch.randn(2, 8)
    report = ex.preflight(numbers("gpipe", 2, 2), linear(2), batch, loss=MSE)
    assert "input 1 of shape (3, 2, 5) has 2 on axis 1: move it there with movedim(1, 0)" in sentences(report, "error")


def test_a_short_last_batch_is_told(make_layers):
    data = TensorDataset(*rows(20))
    report = ex.preflight(
        numbers("1f1b", 2, 4), make_layers(2), rows(8), loss=MSE, batches=DataLoader(data, batch_size=8)
    )
    assert "the last one has 4 rows instead of 8" in sentences(report, "warning")
    assert "use drop_last=True, or fill it up to 8" in sentences(report, "warning")
    even = DataLoader(data, batch_size=8, drop_last=True)
    assert ex.preflight(numbers("1f1b", 2, 4), make_layers(2), rows(8), loss=MSE, batches=even).warnings == ()
    listed = [rows(8), rows(8), rows(3)]
    report = ex.preflight(numbers("1f1b", 2, 4), make_layers(2), rows(8), loss=MSE, batches=listed)
    assert "the last one has 3 rows instead of 8, not cut into 4 equal micro-batches" in sentences(report, "error")


def test_shapes_that_change_from_step_to_step_are_refused():
    layers = [nn.Linear(8, 8), nn.Linear(8, 8)]
    first, second = [(torch.randn(4, n, 8), torch.randn(4, n, 8)) for n in (5, 7)]
    report = ex.preflight(numbers("gpipe", 2, 2), layers, first, loss=MSE, batches=[first, second])
    assert "stage 0 would get (2, 5, 8) and in step 1 (2, 7, 8)" in sentences(report, "error")


class Trim(nn.Module):
    """Keeps as many columns as its largest value says."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : int(x.max())]


def test_shapes_that_change_from_micro_batch_to_micro_batch_are_refused():
    inputs = torch.tensor([[3.0] * 8, [5.0] * 8])
    report = ex.preflight(
        numbers("gpipe", 2, 2), [Trim(), nn.Identity()], (inputs, torch.zeros(2)), loss=lambda o, t: (o + 0).mean()
    )
    assert "stage 0 gives (1, 3) for micro-batch 0 and (1, 5) for 1; pad" in sentences(
        ex.preflight(ex.schedule("forward_only", n_ranks=2, n_micro_batches=2), [Trim(), nn.Identity()], inputs),
        "error",
    )
    assert "does not depend on any parameter" in sentences(report, "error")


def test_a_stage_that_is_cut_off_from_what_follows_is_told():
    class Detached(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    report = ex.preflight(numbers("gpipe", 2, 2), [Detached(8, 8), nn.Linear(8, 8)], rows(4), loss=MSE)
    assert "what stage 0 hands on requires none, so nothing up to it learns" in sentences(report, "warning")


def test_a_frozen_first_stage_runs_and_is_told(sgd):
    layers = linear(2)
    layers[0].requires_grad_(requires_grad=False)
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    assert "stage 0 has no parameter that requires a gradient" in sentences(
        ex.preflight(program, layers, rows(8), loss=MSE, optimizer=sgd), "note"
    )
    assert ex.execute(program, layers, rows(8), loss=MSE, optimizer=sgd, n_steps=2).parity


def test_more_ranks_than_cores_are_told_for_processes(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    report = ex.preflight(numbers("gpipe", 4, 4), linear(4), rows(8), loss=MSE, backend="processes")
    assert "got 4 ranks on 2 cores" in sentences(report, "warning")


def test_autocast_around_processes_is_refused():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        report = ex.preflight(numbers("gpipe", 2, 2), linear(2), rows(8), loss=MSE, backend="processes")
    assert "would compute without bfloat16; switch it on within the layers' forward" in sentences(report, "error")


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("place", [0, 1])
def test_a_layer_that_works_in_place_at_the_beginning_of_a_stage_runs_right(place, n_steps, sgd):
    class Grow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    layers = [*linear(place), Grow(), *linear(2 - place)]
    inputs, targets = rows(8)
    before = inputs.clone()
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    run = ex.execute(program, layers, (inputs, targets), loss=MSE, optimizer=sgd, n_steps=n_steps, split_points=["1"])
    assert run.parity
    assert torch.equal(inputs, before)
    assert ("works in place" in sentences(run.preflight, "note")) == (place == 1)


def test_a_run_keeps_what_was_found_before_it(make_layers):
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=2)
    run = ex.execute(program, make_layers(4), rows(8), loss=MSE)
    assert "m=2 is below total stages 4" in sentences(run.preflight, "warning")


def test_a_report_is_a_frame_of_rows():
    frame = ex.preflight(numbers("gpipe", 2, 3), linear(2), rows(8), loss=MSE).to_frame()
    assert list(frame) == ["severity", "rule", "came", "advice", "argument", "legal"]
    assert frame.severity[0] == "error"
    assert frame.came[0] == "got 8 and 3"


def test_a_look_leaves_random_numbers_and_the_model_as_they_are():
    layers = [nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)]
    state = torch.get_rng_state()
    ex.preflight(numbers("gpipe", 3, 2), layers, (torch.ones(8, 8), torch.ones(8, 8)), loss=MSE)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(layers[1].running_mean, torch.zeros(8))


@pytest.mark.parametrize("dialect", ["pytorch", 3])
def test_a_dialect_that_there_is_not_is_told(dialect, program, make_layers, batch):
    report = ex.preflight(program, make_layers(4), batch, loss=nn.functional.mse_loss, dialect=dialect)
    (finding,) = [finding for finding in report.errors if finding.argument == "dialect"]
    assert finding.sentence.startswith("a dialect is one of deepspeed, megatron, torch; got ")
