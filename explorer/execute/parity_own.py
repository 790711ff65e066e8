"""Does a run of one's own, made with whatever, equal the model in one process?"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from explorer.errors import InputError
from explorer.execute.checks import Loss, check_batch, count_labels
from explorer.execute.cutting import cut
from explorer.execute.fit import fit
from explorer.execute.losses import check_loss, own_copy
from explorer.execute.parity import Outcome, Parity
from explorer.execute.parity_factors import Counts
from explorer.execute.parity_given import check_count, check_tensors, numbers
from explorer.execute.parity_reasons import reason_of
from explorer.execute.parity_reference import Whole, mean_of_means
from explorer.execute.parity_rounding import Rounding, norm_of, rounding_of
from explorer.execute.parity_rows import Row, number_row, tensor_rows, unjudged
from explorer.execute.parity_tied import Named, Parts, gather, tied_reason, ties
from explorer.execute.session import Seeds
from explorer.execute.settings import casts_afresh, random_state_kept
from explorer.execute.stages import no_pulse
from explorer.execute.traits import Traits, Watch
from explorer.schedules import schedule

_OTHER_MACHINE = 4  # times as much rounding: another device sums in another order


def same_as_one_process(
    model: Any,
    batch: Any,
    loss: Loss,
    *,
    gradients: Named | Sequence[Named] | None = None,
    losses: float | Sequence[float] | None = None,
    gradient_norm: float | Sequence[float] | None = None,
    buffers: Named | None = None,
    n_micro_batches: int = 1,
    n_accumulated: int = 1,
    n_replicas: int = 1,
) -> Parity:
    """Compare a step of your own run with the same step of the model in one piece, in one process.

    A copy of the model does one step forward and backward over the whole batch; of a model that looks at the batch,
    over the same micro-batches. What differs by a usual wrong factor is named with it.

    Args:
        model: in one piece, a list of layers or any nn.Module, with the weights that the step began with.
        batch: (inputs, targets) of that step, all of it.
        loss: outputs and targets → one number, as one process would use it.
        gradients: name → gradient after the step, named as the model names its parameters; or one such mapping for
            each rank.
        losses: the step's loss, or that of each micro-batch in their order.
        gradient_norm: over all gradients, or over those of each rank.
        buffers: name → after the step.
        n_micro_batches: that the step was cut into.
        n_accumulated: steps over this batch that were added up without zero_grad().
        n_replicas: data-parallel copies of the pipeline.

    Raises:
        InputError: if a name or shape is not the model's, or nothing is given to compare.

    Example:
        >>> import torch, explorer as ex
        >>> model, batch = torch.nn.Linear(2, 1), (torch.ones(4, 2), torch.zeros(4, 1))
        >>> loss = torch.nn.functional.mse_loss
        >>> loss(model(batch[0]), batch[1]).backward()
        >>> twice = {name: 2 * p.grad for name, p in model.named_parameters()}
        >>> print(ex.same_as_one_process(model, batch, loss, gradients=twice))
        False: gradients are 2 times too large; backward ran twice or the step before was kept: zero_grad() ...
    """
    if gradients is None and losses is None and gradient_norm is None and buffers is None:
        raise InputError(
            "a comparison needs something to compare; got neither gradients nor losses, gradient_norm or buffers; "
            "give one of them",
            argument="gradients",
        )
    for argument, number in {"n_accumulated": n_accumulated, "n_replicas": n_replicas}.items():
        check_count(number, argument)
    if buffers is not None:
        check_tensors(buffers, "buffers")
    with torch.inference_mode(mode=False), random_state_kept(), torch.enable_grad(), casts_afresh():
        whole, traits, counts = _reference(model, batch, loss, n_micro_batches, n_replicas)
        each = whole.losses_by_micro_batch()
        outcome, sentence = whole.train(1, math.nan, no_pulse)
    tied = ties(model)
    theirs = {name: value * n_accumulated for name, value in outcome.gradients.items() if name not in tied}
    given = _without_unused(gather(gradients), theirs, whole.model.whole)
    rounding = _coarser(whole.rounding, given)
    rows, reason = _loss_rows(losses, outcome, each, rounding)
    allowed = rounding.of_tensors()
    if gradients is not None:
        _check_names(given, theirs, tied)
        found, why = _gradient_rows(given, theirs, tied, allowed)
        rows, reason = [*rows, *found], reason or why
    rows += _norm_rows(gradient_norm, theirs, allowed)
    rows += tensor_rows("buffer", buffers, outcome.buffers, allowed, step=0) if buffers is not None else []
    reason = reason or _counter_reason(rows) or _random_reason(rows, traits) or reason_of(rows, counts)
    note = _note(traits, n_micro_batches) or unjudged(theirs if gradients is not None else {}, allowed)
    return Parity(tuple(rows), sentence, "" if all(row.ok for row in rows) else reason, note)


def _reference(
    model: Any, batch: Any, loss: Loss, n_micro_batches: int, n_replicas: int
) -> tuple[Whole, Traits, Counts]:
    program = schedule("gpipe", n_ranks=1, n_micro_batches=n_micro_batches)
    inputs, targets = check_batch(batch, program, loss)
    copy, base = cut(model, 1, split_points=None, sample=inputs[0]), torch.initial_seed()
    with Watch(copy) as watch:
        _, output = fit(copy, inputs[0], program)
        if targets is not None:
            check_loss(own_copy(loss), output, targets[0], trains=True)
    traits = watch.traits
    seeds = Seeds(base) if traits.random else None
    rounding = rounding_of(copy, inputs, epsilon=traits.epsilon * _OTHER_MACHINE, depth=traits.depth)
    by_micro_batch = traits.random or traits.statistics
    counts = Counts(n_micro_batches, sum(len(v[0]) for v in inputs), count_labels(targets), n_replicas)
    return Whole(copy, inputs, targets, own_copy(loss), None, seeds, by_micro_batch, rounding), traits, counts


def _loss_rows(
    losses: float | Sequence[float] | None, outcome: Outcome, each: Sequence[float], rounding: Rounding
) -> tuple[list[Row], str]:
    """The step's loss and each micro-batch's, and what is known of why they differ."""
    if losses is None:
        return [], ""
    listed = numbers(losses, "losses")
    if len(listed) not in {1, len(each)}:
        raise InputError(
            f"losses are one number, or one for each micro-batch; got {len(listed)} for {len(each)}; give {len(each)}",
            argument="losses",
        )
    allowed, whole = rounding.of_loss(), outcome.losses[0]
    adds = len(each) > 1 and abs(sum(each) - whole) <= allowed * sum(map(abs, each))  # it sums over its batch
    mean = sum(listed) / (1 if adds else len(listed))
    row = number_row("loss", 0, mean, whole, allowed)
    rows = [row]
    if len(listed) > 1:
        scale = max(map(abs, each))
        pairs = zip(listed, each, strict=True)
        rows += [
            number_row("loss", 0, a, b, allowed, scale=scale)._replace(name=f"micro-batch {m}")
            for m, (a, b) in enumerate(pairs)
        ]
        others = zip(sorted(listed), sorted(each), strict=True)
        if not all(r.ok for r in rows[1:]) and all(abs(a - b) <= allowed * scale for a, b in others):
            return rows, "losses are those of other micro-batches; pair each output with its own micro-batch's labels"
    expected = sum(each) / (1 if adds else len(each))
    if not row.ok and abs(mean - expected) <= allowed * abs(expected):
        return rows, mean_of_means(whole, mean)
    return rows, ""


def _gradient_rows(
    given: Mapping[str, Sequence[tuple[str, torch.Tensor]]],
    theirs: Mapping[str, torch.Tensor],
    tied: Mapping[str, str],
    allowed: float,
) -> tuple[list[Row], str]:
    """Each gradient; of one that came in parts, its parts and their sum."""
    parts: dict[str, list[tuple[str, torch.Tensor]]] = {}
    for name, values in given.items():
        known = parts.setdefault(tied.get(name, name), [])
        known += [one for one in values if not any(one[1] is other for _, other in known)]  # one under two names
    single = {name: values[0][1] for name, values in parts.items() if len(values) == 1}
    summed = {name: torch.stack([value for _, value in values]).sum(0) for name, values in parts.items()}
    rows, reason = tensor_rows("gradient", {**summed, **single}, theirs, allowed, step=0), ""
    for place, row in enumerate(rows):
        if len(parts.get(row.name, ())) > 1:
            rows[place], why = tied_reason(row, parts[row.name], theirs[row.name], allowed)
            reason = reason or why
    ours = math.hypot(*(row.ours for row in rows if row.name in theirs))
    if not reason:
        rows.append(number_row("gradient norm", 0, ours, norm_of(list(theirs.values())), allowed))
    return rows, reason


def _norm_rows(given: float | Sequence[float] | None, theirs: Mapping[str, torch.Tensor], allowed: float) -> list[Row]:
    if given is None:
        return []
    total = math.hypot(*numbers(given, "gradient_norm"))
    return [number_row("gradient norm", 0, total, norm_of(list(theirs.values())), allowed)._replace(name="given")]


def _without_unused(given: Parts, theirs: Named, model: torch.nn.Module) -> Parts:
    """Without the zeros that some give for a parameter of which nothing depends, and which has no gradient here."""
    known = {name for name, _ in model.named_parameters(remove_duplicate=False)} - set(theirs)
    idle = {name for name in known & set(given) if not any(bool(value.any()) for _, value in given[name])}
    return {name: values for name, values in given.items() if name not in idle}


def _check_names(ours: Iterable[str], theirs: Named, tied: Mapping[str, str]) -> None:
    for name in ours:
        if tied.get(name, name) not in theirs:
            near = difflib.get_close_matches(name, theirs, n=1, cutoff=0.0)
            hint = f"did you mean {near[0]}?" if near else "the model has none that learns"
            raise InputError(
                f"gradients are named as the model names its parameters; got {name!r}; {hint}", argument="gradients"
            )


def _coarser(rounding: Rounding, given: Mapping[str, Sequence[tuple[str, torch.Tensor]]]) -> Rounding:
    """As coarse as the gradients' own format, should that be coarser than the model's."""
    formats = {value.dtype for values in given.values() for _, value in values if value.dtype.is_floating_point}
    epsilon = max([rounding.epsilon, *(torch.finfo(dtype).eps for dtype in formats)])
    return dataclasses.replace(rounding, epsilon=epsilon)


def _counter_reason(rows: Sequence[Row]) -> str:
    """A batch normalisation that has counted one forward too many."""
    counters = [row for row in rows if row.what == "buffer" and row.name.endswith("num_batches_tracked")]
    if not counters or not all(row.ours == row.theirs + 1 for row in counters):
        return ""
    return (
        f"batch-dependent layer: statistics are per micro-batch, and {counters[0].name} has counted "
        f"{counters[0].ours:.0f} forwards for {counters[0].theirs:.0f}: the first step runs one extra forward to learn "
        "shapes in torch before 2.14; give the stage input_args and output_args"
    )


def _random_reason(rows: Sequence[Row], traits: Traits) -> str:
    if all(row.ok for row in rows) or not traits.random:
        return ""
    return (
        "the model draws random numbers, and no other process draws the same; compare with dropout switched off, "
        "model.eval() or p=0"
    )


def _note(traits: Traits, n_micro_batches: int) -> str:
    if traits.statistics and n_micro_batches > 1:
        return (
            f"batch-dependent layer: statistics are per micro-batch, so it counts {n_micro_batches} forwards a step "
            "where one process with the whole batch counts 1"
        )
    return ""
