"""One look before anything starts: every rule that a run must keep, and what may not be meant as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from explorer.core import Program
from explorer.errors import InputError
from explorer.execute.checks import (
    Loss,
    check_backend,
    check_batch,
    check_divisible,
    check_program,
    check_split_points,
)
from explorer.execute.cutting import cut
from explorer.execute.fit import fit
from explorer.execute.losses import check_loss
from explorer.execute.preflight_batch import (
    cores,
    dialect_refusal,
    few_micro_batches,
    loss_of_rows,
    parts,
    torchs_own_rule,
    uneven_labels,
)
from explorer.execute.preflight_case import Case, Rule
from explorer.execute.preflight_model import (
    autocast,
    carried_along,
    cut_off,
    draws_at_random,
    in_place,
    layers_conserved,
    looks_at_batch,
    nothing_to_train,
)
from explorer.execute.preflight_report import Collector, Report
from explorer.execute.preflight_steps import other_batches, steady_shapes
from explorer.execute.settings import casts_afresh, random_state_kept
from explorer.execute.stages import CutModel
from explorer.execute.traits import Watch
from explorer.execute.updates import MakeOptimizer, check_optimizer, make_optimizers
from explorer.schedules import schedule

_DIALECTS = ("deepspeed", "megatron", "torch")
_RULES: tuple[Rule, ...] = (
    *(few_micro_batches, torchs_own_rule, uneven_labels, cores, autocast, looks_at_batch, cut_off, layers_conserved),
    *(in_place, carried_along, draws_at_random, nothing_to_train, parts),
)
_THOROUGH: tuple[Rule, ...] = (loss_of_rows, steady_shapes)  # these run the loss or the model once more


def preflight(
    program: Program | Mapping[str, Any],
    model: Any,
    batch: Any,
    *,
    loss: Loss | None = None,
    optimizer: MakeOptimizer | None = None,
    split_points: Sequence[str] | None = None,
    backend: str = "kernel",
    dialect: str | None = None,
    batches: Any = None,
) -> Report:
    """All that a run would be refused for, and what may not be meant as it is, before anything starts.

    One micro-batch after the other goes forward through a copy of the model, and the loss is tried; nothing is trained,
    and random numbers and the model stay as they are. All of this runs in the process that calls it, whatever the
    backend: what a layer raises is a finding, but one that ends its process, as a fault in C++ does, ends this one.

    Args:
        program: that would run, or the arguments of `schedule` by name, so that its own refusal is found, too:
            {"name": "1f1b", "n_ranks": 4, "n_micro_batches": 8}.
        model: as `execute` takes it.
        batch: as `execute` takes it.
        loss: outputs and targets of a micro-batch → one number.
        optimizer: parameters → torch optimizer; None to train nothing.
        split_points: names of the layers or submodules where a new stage begins.
        backend: "kernel" or "processes".
        dialect: whose rule for the number of micro-batches must hold: "torch", "megatron", …; None for this run's own.
        batches: those of further steps, or the DataLoader they come from.

    Example:
        >>> import explorer as ex
        >>> ready = ex.ready_model("mlp", n_stages=4, n_micro_batches=8)
        >>> program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
        >>> ex.preflight(program, ready.layers, ready.batch, loss=ready.loss).ok
        True
    """
    found = Collector()
    for check, value in ((check_backend, backend), (check_split_points, split_points), (check_optimizer, optimizer)):
        found.of(check, value)
    made = found.of(_made, program, dialect)
    if made is None:
        _without_program(found, program, batch)
        return found.report()
    cut_batch = found.of(check_batch, batch, made, loss)
    if batches is not None:
        found.findings += other_batches(batches, batch, made, loss)
    sample = cut_batch[0][0] if cut_batch else _first_rows(batch, made.n_micro_batches)
    with (
        torch.inference_mode(mode=False),
        random_state_kept(),
        torch.set_grad_enabled(made.has_backward),
        casts_afresh(),
    ):
        whole = found.of(cut, model, made.n_stages, split_points=split_points, sample=sample)
        if whole is not None and cut_batch is not None:
            found.of(_look, found, made, whole, *cut_batch, loss, optimizer, backend)
    return found.report()


def advise(case: Case, *, rules: Sequence[Rule] = _RULES) -> Report:
    """What a run that begins should know of itself."""
    found = Collector()
    for rule in rules:
        found.findings += rule(case)
    return found.report()


def refuse(report: Report) -> None:
    """Raise the first of a report's errors, if it has any.

    Raises:
        InputError: in the finding's words.
    """
    for finding in report.errors:
        raise InputError(finding.sentence, argument=finding.argument, legal=finding.legal)


def _made(program: Any, dialect: str | None) -> Program:
    """The program, made if its numbers came, and legal in the dialect that is asked for."""
    if isinstance(program, Mapping):
        wanted = {key: value for key, value in program.items() if key != "name"}
        if "name" not in program or not all(isinstance(key, str) for key in program):
            raise InputError(
                f"a schedule is made of its name and numbers; got {', '.join(map(str, program)) or 'nothing'}; try "
                '{"name": "1f1b", "n_ranks": 4, "n_micro_batches": 8}',
                argument="program",
            )
        program = schedule(program["name"], **wanted)
    check_program(program)
    made: Program = program
    if dialect is not None and dialect not in _DIALECTS:
        raise InputError(
            f"a dialect is one of {', '.join(_DIALECTS)}; got {dialect!r}; try torch",
            argument="dialect",
            legal=_DIALECTS,
        )
    refusal = dialect_refusal(made, dialect) if dialect is not None else None
    if refusal is not None:
        raise refusal
    return made


def _without_program(found: Collector, program: Any, batch: Any) -> None:
    """What can be said of the batch though there is no program for it."""
    n = program.get("n_micro_batches") if isinstance(program, Mapping) else None
    rows = _first_rows(batch, 1)
    if isinstance(n, int) and n > 0 and rows:
        found.of(check_divisible, len(rows[0]), n)


def _first_rows(batch: Any, n_micro_batches: int) -> tuple[torch.Tensor, ...]:
    """About what one micro-batch would hold, of a batch that may be cut or not."""
    inputs = batch[0] if isinstance(batch, (tuple, list)) and len(batch) else batch
    values = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.ndim]
    return tuple(value[: max(len(value) // n_micro_batches, 1)].detach().clone() for value in tensors)


def _look(
    found: Collector,
    program: Program,
    model: CutModel,
    inputs: Any,
    targets: Any,
    loss: Loss | None,
    optimizer: MakeOptimizer | None,
    backend: str,
) -> None:
    """Run the first micro-batch, and apply all rules to what is seen."""
    with Watch(model) as watch:
        samples, output = fit(model, inputs[0], program)
        if loss is not None and targets is not None:
            check_loss(loss, output, targets[0], trains=program.has_backward)
    found.of(make_optimizers, optimizer, model)
    case = Case(program, model, inputs, targets, loss, samples, output, watch.traits, backend)
    found.findings += advise(case, rules=(*_RULES, *_THOROUGH)).findings
