"""Pre-flight on what changes while a run goes on: shapes from step to step, and from micro-batch to micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from explorer.core import Program
from explorer.errors import ExplorerError
from explorer.execute.checks import Loss, check_batch
from explorer.execute.fit import fit
from explorer.execute.preflight_case import Case
from explorer.execute.preflight_report import ERROR, NOTE, WARNING, Finding


def steady_shapes(case: Case) -> Iterator[Finding]:
    """Every micro-batch through every stage: what a stage gives must have one shape."""
    with torch.no_grad():
        for number, values in enumerate(case.inputs[1:], start=1):
            try:
                samples, _ = fit(case.model, values, case.program)
            except ExplorerError as error:
                yield Finding.of(error)._replace(came=f"micro-batch {number}: {error}")
                return
            for stage, (first, other) in enumerate(zip(case.samples, samples, strict=True)):
                before, after = (tuple(tuple(v.shape) for v in sample.outputs) for sample in (first, other))
                if before != after:
                    yield Finding(
                        ERROR,
                        "what a stage hands on has one shape for all micro-batches",
                        f"stage {stage} gives {_words(before)} for micro-batch 0 and {_words(after)} for {number}",
                        "pad to one length",
                        "model",
                    )
                    return


def other_batches(batches: Any, first: Any, program: Program, loss: Loss | None) -> Iterator[Finding]:
    """How the batches of further steps differ from the first: torch's stages keep buffers of one shape.

    Args:
        batches: a sequence of batches, or a DataLoader, which is asked for its lengths alone.
        first: the batch of the first step.
        program: that would run.
        loss: of a micro-batch.
    """
    if hasattr(batches, "dataset"):
        yield from _of_loader(batches, program)
        return
    for step, batch in enumerate(batches):
        if not _shapes(batch) or _shapes(batch) == _shapes(first):
            continue
        size, usual = _shapes(batch)[0][0], _shapes(first)[0][0]
        if step == len(batches) - 1 and size < usual and _like(_shapes(batch), _shapes(first)):
            yield _short(size, usual, program)
            continue
        yield Finding(
            ERROR,
            "a batch has one shape in every step of a run",
            f"stage 0 would get {_words(_part(first, program))} and in step {step} {_words(_part(batch, program))}",
            "pad to one length, or run each shape by itself",
            "batches",
        )
        try:
            check_batch(batch, program, loss)
        except ExplorerError as error:
            yield Finding.of(error)


def _of_loader(loader: Any, program: Program) -> Iterator[Finding]:
    size, n = getattr(loader, "batch_size", None), len(loader.dataset)
    if not size or getattr(loader, "drop_last", False) or n % size == 0:
        yield Finding(NOTE, "all batches are of one size", f"{n // size if size else '?'} of {size}", "")
    else:
        yield _short(n % size, size, program)


def _short(size: int, usual: int, program: Program) -> Finding:
    n = program.n_micro_batches
    kind = WARNING if size % n == 0 else ERROR
    cut = "cut into other shapes" if size % n == 0 else f"not cut into {n} equal micro-batches"
    return Finding(
        kind,
        "a batch has one shape in every step of a run",
        f"the last one has {size} rows instead of {usual}, {cut}",
        f"use drop_last=True, or fill it up to {usual}",
        "batches",
        (usual,),
    )


def _tensors(batch: Any) -> list[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        return [batch]
    if isinstance(batch, (tuple, list)):
        return [tensor for value in batch for tensor in _tensors(value)]
    return []


def _shapes(batch: Any) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in _tensors(batch) if tensor.ndim]


def _like(some: Sequence[tuple[int, ...]], others: Sequence[tuple[int, ...]]) -> bool:
    return [shape[1:] for shape in some] == [shape[1:] for shape in others]


def _part(batch: Any, program: Program) -> tuple[tuple[int, ...], ...]:
    """The shape of the first input's micro-batch."""
    shape = _shapes(batch)[0]
    return ((max(shape[0] // program.n_micro_batches, 1), *shape[1:]),)


def _words(shapes: Sequence[tuple[int, ...]]) -> str:
    return " and ".join(map(str, shapes))
