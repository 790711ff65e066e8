"""What a run refuses before it begins, each in one sentence."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from explorer.core import MESSAGE_KINDS, Costs, Kind, Program, check
from explorer.errors import InputError, ModelError, ProgramError
from explorer.execute.hooks import Hook

Values = tuple[torch.Tensor, ...]
Loss = Callable[[Any, torch.Tensor], torch.Tensor]

IGNORED = -100  # the class that torch's losses leave out unless told otherwise
BACKENDS = ("kernel", "processes", "torchrun")
_LONGEST = 1_000_000  # seconds: sockets count no more


def check_backend(backend: str) -> None:
    """Refuse a backend there is not.

    Raises:
        InputError: naming those there are.
    """
    if backend not in BACKENDS:
        raise InputError(
            f"a backend is one of {', '.join(BACKENDS)}; got {backend!r}; try {BACKENDS[0]}", argument="backend"
        )


def check_steps(n_steps: int) -> None:
    """Refuse a number of steps that is none.

    Raises:
        InputError: with 1 as the nearest.
    """
    if isinstance(n_steps, bool) or not isinstance(n_steps, (int, np.integer)) or n_steps < 1:
        raise InputError(
            f"n_steps is a whole number of at least 1; got {n_steps!r}; try 1", argument="n_steps", legal=(1,)
        )


def check_hooks(hooks: Any) -> None:
    """Refuse what is no sequence of hooks.

    Raises:
        InputError: saying what came.
    """
    listed = isinstance(hooks, (list, tuple))
    wrong = next((hook for hook in hooks if not isinstance(hook, Hook)), None) if listed else hooks
    if not listed or wrong is not None:
        what = f"the class {wrong.__name__}" if isinstance(wrong, type) else type(wrong).__name__
        raise InputError(f"hooks is a list of Hook objects; got {what}; try hooks=[Recorder()]", argument="hooks")


def check_links(links: Any) -> None:
    """Refuse a link model that is none.

    Raises:
        InputError: saying what came.
    """
    if links is not None and not isinstance(links, Costs):
        raise InputError(
            f"links is None or Costs; got {type(links).__name__}; try Costs(latency=0.001)", argument="links"
        )


def check_real(backend: str, *, links: Any, clock: Any) -> None:
    """Refuse a link model or a clock for a backend that has real ones.

    Raises:
        InputError: naming the argument.
    """
    for argument, value in {"links": links, "clock": clock}.items():
        if backend != "kernel" and value is not None:
            raise InputError(
                f"processes have links and a clock of their own, which are measured; got {argument} besides; leave it "
                'out, or run backend="kernel"',
                argument=argument,
            )


def check_model(model: Any) -> None:
    """Refuse the name of a file.

    Raises:
        ModelError: with what to do instead.
    """
    if isinstance(model, (str, bytes, os.PathLike)):
        raise ModelError(
            f"a model is a module or a list of layers, for a file may hold code that runs when it is read; got "
            f"{str(model)[:80]!r}; make the module, and give it its weights by load_state_dict(torch.load(file, "
            "weights_only=True))",
            argument="model",
        )


def check_timeout(timeout: Any) -> None:
    """Refuse a limit that is none.

    Raises:
        InputError: saying what came.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < _LONGEST:
        raise InputError(
            f"timeout is a number of seconds, more than 0 and less than {_LONGEST:,}; got {timeout!r}; try 30",
            argument="timeout",
        )


def check_split_points(split_points: Any) -> None:
    """Refuse split points that are no names.

    Raises:
        InputError: saying what came.
    """
    listed = isinstance(split_points, (list, tuple)) and all(isinstance(name, str) for name in split_points)
    if split_points is not None and not listed:
        raise InputError(
            f'split_points is a list of names; got {split_points!r}; try ["layers.2"]', argument="split_points"
        )


def check_clock(clock: Any) -> None:
    """Refuse a clock that gives no number.

    Raises:
        InputError: saying what came.
    """
    if clock is None:
        return
    now = clock() if callable(clock) else clock
    if not callable(clock) or not isinstance(now, (int, float)) or not math.isfinite(now):
        raise InputError(
            f"a clock is called for the seconds now, a finite number; got {now!r}; try time.perf_counter",
            argument="clock",
        )


def check_program(program: Program) -> None:
    """Refuse a program that is incomplete, or holds what torch's runtime cannot do in one process.

    Raises:
        ProgramError: with the reason.
    """
    if not isinstance(program, Program):
        raise InputError(
            f"execute runs a Program; got {type(program).__name__}; make one with schedule(…)", argument="program"
        )
    check(program)
    if (program.placement.weight_copies > 1).any():
        stage = int(np.flatnonzero(program.placement.weight_copies > 1)[0])
        raise ProgramError(
            "torch's runtime holds each stage once, so a run needs one weight copy a stage; "
            f"{program.name} has {program.placement.weight_copies[stage]} of stage {stage}; simulate it instead"
        )
    if program.weight_versions is not None and (program.weight_versions > 1).any():
        raise ProgramError(
            "torch's runtime keeps one version of the weights and updates them after the step; "
            f"{program.name} keeps up to {program.weight_versions.max()}; run 1f1b, or simulate it"
        )
    if program.n_segments > 1:
        raise ProgramError(
            "torch's runtime passes whole sequences from stage to stage; "
            f"{program.name} cuts them into {program.n_segments} segments; simulate it instead"
        )
    unknown = np.flatnonzero(~np.isin(program.kind, (Kind.F, Kind.B, Kind.I, Kind.W)))
    if len(unknown):
        action = program.action(int(unknown[0]))
        reason = (
            "hands messages over by itself, so a program here holds none"
            if action.kind in MESSAGE_KINDS
            else "runs F, B, I and W; the optimizer follows the step by itself"
        )
        raise ProgramError(f"a run in the kernel {reason}; {program.name} has {action}; leave it out, or simulate it")


def check_batch(batch: Any, program: Program, loss: Loss | None) -> tuple[list[Values], list[torch.Tensor] | None]:
    """The batch as micro-batches: the inputs of each, and the targets of each or None.

    Each is a tensor of its own, so that what one micro-batch holds can be told from the others'.

    Raises:
        ModelError: if batch and program do not go together.
    """
    inputs, targets = _inputs_and_targets(batch)
    if program.has_backward and not callable(loss):
        raise ModelError(
            f"{program.name} trains, so it needs a loss; got {loss!r}; give loss=fn with fn(outputs, targets)",
            argument="loss",
        )
    if loss is not None and targets is None:
        raise ModelError("a loss compares with targets; got none; give batch=(inputs, targets)", argument="batch")
    sizes = [len(tensor) if tensor.ndim else 0 for tensor in inputs]
    if len(set(sizes)) > 1:
        raise ModelError(
            f"all inputs are of one batch size; got {sizes}; {_other_axis(inputs, sizes[0])}", argument="batch"
        )
    if targets is not None and (not targets.ndim or len(targets) != sizes[0]):
        n_targets = len(targets) if targets.ndim else 0
        raise ModelError(
            f"inputs and targets are of one batch size; got {sizes[0]} inputs and {n_targets} targets; cut both to "
            f"{min(sizes[0], n_targets)}",
            argument="batch",
        )
    check_divisible(sizes[0], program.n_micro_batches)
    n = program.n_micro_batches
    parts = list(zip(*(_parts(tensor, n) for tensor in inputs), strict=True))
    return parts, None if targets is None else _parts(targets, n)


def check_divisible(batch_size: int, n_micro_batches: int) -> None:
    """Refuse a batch that is not cut into equal micro-batches.

    Raises:
        ModelError: with the nearest numbers of micro-batches that would do.
    """
    if batch_size and batch_size % n_micro_batches == 0:
        return
    divisors = [n for n in range(1, batch_size + 1) if batch_size % n == 0]
    legal = tuple(sorted(divisors, key=lambda n: (abs(n - n_micro_batches), -n))[:2])
    fitting = max(round(batch_size / n_micro_batches), 1) * n_micro_batches
    micro = f"{' or '.join(map(str, legal))} micro-batches, or " if legal else ""
    raise ModelError(
        f"the batch must be a multiple of n_micro_batches; got {batch_size} and {n_micro_batches}; "
        f"try {micro}a batch of {fitting}",
        argument="n_micro_batches",
        legal=legal,
    )


def count_labels(targets: Sequence[torch.Tensor] | None) -> int:
    """How many classes are to be told, without those that torch's losses leave out; 0 where targets are numbers."""
    if not targets or targets[0].is_floating_point():
        return 0
    return sum(int((target != IGNORED).sum()) for target in targets)


def _inputs_and_targets(batch: Any) -> tuple[Values, torch.Tensor | None]:
    if isinstance(batch, torch.Tensor):
        batch = (batch, None)
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        what = _kind_of(batch)
        raise ModelError(f"a batch is (inputs, targets); got {what}; give both as tensors", argument="batch")
    inputs, targets = batch
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    wrong: Sequence[Any] = [value for value in inputs if not isinstance(value, torch.Tensor)]
    if targets is not None and not isinstance(targets, torch.Tensor):
        wrong = [targets]
    if wrong or not inputs:
        what = _kind_of(wrong[0]) if wrong else "no inputs"
        raise ModelError(f"inputs and targets are tensors; got {what}; make it a tensor", argument="batch")
    return inputs, targets


def _other_axis(inputs: Values, size: int) -> str:
    """What would mend inputs of different lengths: one may have its batch on another axis."""
    for place, value in enumerate(inputs):
        axis = next((axis for axis in range(1, value.ndim) if value.shape[axis] == size), None)
        if axis is not None and len(value) != size:
            shape = tuple(value.shape)
            return f"input {place} of shape {shape} has {size} on axis {axis}: move it there with movedim({axis}, 0)"
    return f"cut them to {min(len(value) if value.ndim else 0 for value in inputs)}"


def _parts(tensor: torch.Tensor, n: int) -> list[torch.Tensor]:
    with torch.inference_mode(mode=False):  # what it makes knows of no writes
        return [part.detach().clone() for part in torch.tensor_split(tensor.detach(), n)]


def _kind_of(value: Any) -> str:
    return f"{len(value)} values" if isinstance(value, (tuple, list)) else type(value).__name__
