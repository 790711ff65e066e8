"""The unpipelined model on the same batch, and how far a run is from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from explorer.execute.checks import Loss, Values
from explorer.execute.session import Seeds
from explorer.execute.stages import CutModel
from explorer.execute.updates import MakeOptimizer

_FLOOR = 1e-3  # of the largest tensor's norm: below it a gradient may be rounding noise alone
# tolerances: of the first loss and of all else, in epsilons, and of anything
_FIRST, _LATER, _MOST = 32, 1000, 0.1


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a training came to.

    Attributes:
        losses: of each step.
        gradients: name → of the last step.
        parameters: name → after the last step.
        output: of the whole batch, where nothing was trained; else None.
    """

    losses: Sequence[float]
    gradients: Mapping[str, torch.Tensor]
    parameters: Mapping[str, torch.Tensor]
    output: torch.Tensor | None = None


@dataclass(frozen=True)
class Parity:
    """Whether a run equals its reference.

    Attributes:
        holds: within what the coarsest number format in use allows: the first loss, which no step before it has
            spread rounding into, within 32 × its epsilon, all else within 1,000 × and at most a tenth.
        worst: the largest relative difference, over losses, gradients and parameters.
        reference: in a sentence, what it was compared with.
    """

    holds: bool
    worst: float
    reference: str


@dataclass(frozen=True)
class Whole:
    """The reference: one process, the model in one piece.

    Attributes:
        model: a copy of the caller's, cut as the run's.
        inputs: of each micro-batch.
        targets: of each micro-batch, or None.
        loss: or None.
        optimizer: as the caller gave it.
        seeds: of random layers, or None.
        by_micro_batch: whether it is fed micro-batches: layers that look at the batch or draw random numbers would
            see another batch otherwise.
    """

    model: CutModel
    inputs: Sequence[Values]
    targets: Sequence[torch.Tensor] | None
    loss: Loss | None
    optimizer: MakeOptimizer | None
    seeds: Seeds | None
    by_micro_batch: bool

    def train(self, n_steps: int, first_loss: float, pulse: Callable[[], None]) -> tuple[Outcome, str]:
        """Train as long as the run did; the outcome, and which reference this was."""
        parameters = list(dict.fromkeys(p for p in self.model.parameters.values() if p.requires_grad))
        optimizer = self.optimizer(parameters) if self.optimizer is not None and parameters else None
        losses, divisor = [], 1.0
        for step in range(n_steps):
            for parameter in self.model.parameters.values():
                parameter.grad = None
            if self.by_micro_batch:
                losses.append(self._by_micro_batch(step, pulse))
            else:
                loss = self._whole_loss(pulse)
                if not step:
                    divisor = self._divisor(float(loss.detach()), first_loss)
                torch.autograd.backward(loss / divisor)
                losses.append(float(loss.detach()) / divisor)
            if optimizer is not None:
                optimizer.step()
        return self._outcome(losses), self._sentence(divisor)

    def infer(self, n_steps: int, pulse: Callable[[], None]) -> tuple[Outcome, str]:
        """Forward alone: the output of the whole batch, the same in every step."""
        with torch.no_grad():
            if self.by_micro_batch:
                output = torch.cat([self._forward(m, 0, pulse) for m in range(len(self.inputs))])
                losses = self._losses_of(output.tensor_split(len(self.inputs)))
            else:
                output = self._output(self._batch())
                losses = self._losses_of(output.tensor_split(len(self.inputs)))
        return Outcome(losses * n_steps, {}, dict(self.model.parameters), output), self._sentence(1.0)

    def _losses_of(self, outputs: Sequence[torch.Tensor]) -> list[float]:
        if self.loss is None or self.targets is None:
            return []
        return [float(np.mean([float(self.loss(o, t)) for o, t in zip(outputs, self.targets, strict=True)]))]

    def _outcome(self, losses: list[float]) -> Outcome:
        named = self.model.parameters
        gradients = {name: p.grad for name, p in named.items() if p.grad is not None}
        return Outcome(losses, gradients, dict(named))

    def _batch(self) -> Values:
        return tuple(torch.cat(parts) for parts in zip(*self.inputs, strict=True))

    def _whole_loss(self, pulse: Callable[[], None]) -> torch.Tensor:
        pulse()
        if self.loss is None or self.targets is None:
            raise ValueError("a training needs a loss")
        return self.loss(self._output(self._batch()), torch.cat(list(self.targets)))

    def _output(self, values: Values) -> torch.Tensor:
        output: torch.Tensor = self.model.run_whole(values)
        return output

    def _by_micro_batch(self, step: int, pulse: Callable[[], None]) -> float:
        if self.loss is None or self.targets is None:
            raise ValueError("a training needs a loss")
        total = 0.0
        for micro_batch, target in enumerate(self.targets):
            loss = self.loss(self._forward(micro_batch, step, pulse), target) / len(self.targets)
            torch.autograd.backward(loss)
            total += float(loss.detach())
        return total

    def _forward(self, micro_batch: int, step: int, pulse: Callable[[], None]) -> torch.Tensor:
        values: Values = tuple(value.clone() for value in self.inputs[micro_batch])
        for stage, module in enumerate(self.model.stages):
            pulse()
            if self.seeds is not None:
                self.seeds(step, stage, micro_batch)
            output = module(*values)
            values = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        result: torch.Tensor = output
        return result

    def _divisor(self, whole: float, mean: float) -> float:
        """n_micro_batches if the loss sums over the batch instead of averaging, else 1."""
        n = len(self.inputs)
        return float(n) if n > 1 and mean and math.isclose(whole / mean, n, rel_tol=1e-3) else 1.0

    def _sentence(self, divisor: float) -> str:
        n = len(self.inputs)
        if self.by_micro_batch:
            return (
                f"one process, the model in one piece, fed the same {n} micro-batches with the same seeds: it has "
                "layers that look at the whole batch or draw random numbers"
            )
        if divisor > 1:
            return (
                f"one process, the model in one piece, the whole batch at once, its loss divided by {n}: this loss "
                f"sums over the batch instead of averaging, and a step's loss is the mean over {n} micro-batches"
            )
        return "one process, the model in one piece, the whole batch at once"


def compare(run: Outcome, reference: Outcome, sentence: str) -> Parity:
    """How far a run is from its reference."""
    pairs = [_of_losses(run.losses, reference.losses)]
    pairs += _differences(run.gradients, reference.gradients)
    moving = {name for name, grad in reference.gradients.items() if _norm(grad)}
    pairs += _differences(
        {n: p for n, p in run.parameters.items() if n in moving},
        {n: p for n, p in reference.parameters.items() if n in moving},
    )
    if run.output is not None and reference.output is not None:
        pairs += _differences({"output": run.output}, {"output": reference.output})
    worst = max((d if math.isfinite(d) else math.inf for d in pairs), default=0.0)
    epsilon = _epsilon(run)
    first = _of_losses(run.losses[:1], reference.losses[:1])
    return Parity(worst <= min(_LATER * epsilon, _MOST) and first <= _FIRST * epsilon, worst, sentence)


def _of_losses(ours: Sequence[float], theirs: Sequence[float]) -> float:
    if len(ours) != len(theirs):
        return math.inf
    scale = max((abs(loss) for loss in theirs), default=0.0) or 1.0
    return max((abs(a - b) / scale for a, b in zip(ours, theirs, strict=True)), default=0.0)


def _differences(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> list[float]:
    """Relative to each tensor's norm, or to a thousandth of the largest one's."""
    if ours.keys() != theirs.keys():
        return [math.inf]
    floor = _FLOOR * max((_norm(tensor) for tensor in theirs.values()), default=0.0)
    return [_norm(ours[name] - theirs[name]) / (max(_norm(theirs[name]), floor) or 1.0) for name in theirs]


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.detach().float() if tensor.dtype.itemsize < 4 else tensor.detach()))


def _epsilon(run: Outcome) -> float:
    tensors = [*run.parameters.values(), *([] if run.output is None else [run.output])]
    formats = [tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point]
    return max((torch.finfo(dtype).eps for dtype in formats), default=torch.finfo(torch.float32).eps)
