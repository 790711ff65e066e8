"""What a worker is given and gives back: plain values that travel between the caller and its own workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from explorer.core import Program, RankOrder
from explorer.execute.fit import Sample
from explorer.execute.parity_rounding import Sketch
from explorer.execute.session import Bench, Seeds
from explorer.execute.stages import Chain, CutModel, Values, no_pulse
from explorer.execute.training import Job

_WARM_UP = 4  # micro-batches; the first pays for pages, caches and lazy initialisation


class Shape(NamedTuple):
    """A tensor without its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Shape:
        """Of this tensor."""
        return cls(tuple(tensor.shape), tensor.dtype, tensor.requires_grad)

    def empty(self, device: torch.device) -> torch.Tensor:
        """A tensor of this shape, its values left open."""
        return torch.empty(self.shape, dtype=self.dtype, requires_grad=self.requires_grad, device=device)


class Order(NamedTuple):
    """How the ranks of a run meet.

    Attributes:
        group: its number; the same as last time if the ranks are, and then they are in it already.
        n_ranks: in it.
        port: that their store listens on.
        timeout: seconds after which a rank that is waited for is given up.
    """

    group: int
    n_ranks: int
    port: int
    timeout: float


@dataclass(frozen=True)
class Task:
    """One rank's part of a run.

    Attributes:
        rank: it is for.
        job: of the run; inputs and targets only where this rank has the first or the last stage.
        model: with the modules of this rank's stages, and nothing in the others' places.
        inputs: (n_stages,) shapes of what each stage takes.
        outputs: (n_stages,) shapes of what each stage gives.
        seeds: of random layers, or None.
        path: where modules are looked for.
        dtype: that tensors are made of where none is named.
        device: of the caller's model.
    """

    rank: int
    job: Job
    model: CutModel
    inputs: Sequence[tuple[Shape, ...]]
    outputs: Sequence[tuple[Shape, ...]]
    seeds: Seeds | None
    path: list[str]
    dtype: torch.dtype
    device: torch.device

    def samples(self, device: torch.device) -> list[Sample]:
        """What each stage takes and gives, as empty tensors there."""
        pairs = zip(self.inputs, self.outputs, strict=True)
        return [Sample(_empty(taken, device), _empty(given, device)) for taken, given in pairs]


class Failure(NamedTuple):
    """What ended a worker.

    Attributes:
        message: in a sentence.
        is_known: whether that sentence is one of ours, ready to be shown.
        is_echo: whether it only says that another rank is gone.
        details: where it happened.
    """

    message: str
    is_known: bool
    is_echo: bool
    details: str


class Done(NamedTuple):
    """What a rank's training came to.

    Attributes:
        states: stage → its parameters and buffers.
        gradients: name → of the last step.
        outputs: of each micro-batch, of a forward-only program's last stage.
        files: that modules were imported from, and when they were written, in ns.
        sketches: of each step's gradients.
    """

    states: dict[int, dict[str, torch.Tensor]]
    gradients: dict[str, torch.Tensor]
    outputs: dict[int, torch.Tensor]
    files: dict[str, int]
    sketches: Sequence[Sketch] = ()


class Between(NamedTuple):
    """What a rank has between two steps.

    Attributes:
        states: stage → its parameters and buffers.
        optimizer: parameter's name → what its optimizer keeps of it.
        optimizer_type: what keeps that.
    """

    states: dict[int, dict[str, torch.Tensor]]
    optimizer: dict[str, dict[str, Any]]
    optimizer_type: str


def stages_of(program: Program, rank: int) -> list[int]:
    """The stages that a rank holds."""
    return [int(stage) for stage in np.flatnonzero(program.placement.routes[0] == rank)]


def task_of(job: Job, bench: Bench, rank: int) -> Task:
    """A rank's part of a run; what only others need is left out."""
    held = set(stages_of(job.program, rank))
    last = job.program.n_stages - 1
    none: Values = ()
    part = replace(
        job,
        inputs=[_on_host(values) for values in job.inputs] if 0 in held else [none] * len(job.inputs),
        targets=list(_on_host(job.targets)) if job.targets is not None and last in held else None,
        loss=job.loss if last in held else None,
        links=None,
        optimizer_state={n: s for n, s in job.optimizer_state.items() if bench.model.stage_of.get(n) in held},
    )
    return Task(
        rank,
        part,
        _part_of(bench.model, held),
        [tuple(map(Shape.of, sample.inputs)) for sample in bench.samples],
        [tuple(map(Shape.of, sample.outputs)) for sample in bench.samples],
        bench.seeds,
        search_path(),
        torch.get_default_dtype(),
        bench.model.device,
    )


def search_path() -> list[str]:
    """Where this process looks for modules, for a process that works elsewhere."""
    return [path or str(Path.cwd()) for path in sys.path]


def warm_up_of(program: Program) -> Program:
    """The first few micro-batches of a program, in the same order, each action in a slot of its own."""
    n_micro_batches = min(program.n_micro_batches, _WARM_UP)
    orders = []
    for rank in range(program.n_ranks):
        rows = (program.rank_of_action == rank) & (program.micro_batch < n_micro_batches)
        orders.append(RankOrder(program.kind[rows], program.stage[rows], program.micro_batch[rows]))
    return Program.from_columns(program.name, program.placement, n_micro_batches, orders)


def _on_host(values: Sequence[torch.Tensor]) -> Values:
    return tuple(value.cpu() for value in values)


def _part_of(model: CutModel, held: set[int]) -> CutModel:
    stages: list[nn.Module] = [stage if index in held else Chain(()) for index, stage in enumerate(model.stages)]
    for stage in stages:
        if isinstance(stage, Chain):
            stage.pulse = no_pulse
    named: list[dict[str, Any]] = [{} for _ in stages]
    for name, parameter in model.parameters.items():
        stage_of = model.stage_of[name]
        if stage_of in held:
            named[stage_of][name] = parameter
    return CutModel(nn.ModuleList(stage for index, stage in enumerate(stages) if index in held), stages, named)


def _empty(shapes: tuple[Shape, ...], device: torch.device) -> Values:
    return tuple(shape.empty(device) for shape in shapes)
