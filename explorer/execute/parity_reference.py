"""The reference: one process, the model in one piece, on the same batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from explorer.execute.checkpoint_state import OptimizerState, load_optimizer_state
from explorer.execute.checks import Loss, Values
from explorer.execute.parity import Outcome
from explorer.execute.parity_rounding import Rounding, Sketch, sketch_of
from explorer.execute.session import Seeds
from explorer.execute.stages import CutModel, no_pulse
from explorer.execute.updates import MakeOptimizer


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
        rounding: what may differ without being wrong.
        optimizer_state: of a training that goes on, by parameter name.
    """

    model: CutModel
    inputs: Sequence[Values]
    targets: Sequence[torch.Tensor] | None
    loss: Loss | None
    optimizer: MakeOptimizer | None
    seeds: Seeds | None
    by_micro_batch: bool
    rounding: Rounding
    optimizer_state: OptimizerState = field(default_factory=dict)

    def train(self, n_steps: int, first_loss: float, pulse: Callable[[], None]) -> tuple[Outcome, str]:
        """Train as long as the run did; the outcome, and which reference this was."""
        parameters = list(dict.fromkeys(p for p in self.model.parameters.values() if p.requires_grad))
        optimizer = self.optimizer(parameters) if self.optimizer is not None and parameters else None
        if optimizer is not None:
            load_optimizer_state([optimizer], self.model.parameters, self.optimizer_state)
        losses, sketches, divisor, explained = list[float](), list[Sketch](), 1.0, ""
        for step in range(n_steps):
            for parameter in self.model.parameters.values():
                parameter.grad = None
            if self.by_micro_batch:
                losses.append(self._by_micro_batch(step, pulse))
            else:
                loss = self._whole_loss(pulse)
                if not step:
                    divisor = self._divisor(float(loss.detach()), first_loss)
                    explained = self._means(float(loss.detach()) / divisor, first_loss)
                torch.autograd.backward(loss / divisor)
                losses.append(float(loss.detach()) / divisor)
            sketches.append(sketch_of(self.model.parameters))
            if optimizer is not None:
                optimizer.step()
        return self._outcome(losses, sketches, explained), self._sentence(divisor)

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

    def losses_by_micro_batch(self) -> list[float]:
        """The loss of each micro-batch by itself, before any training; buffers stay as they are."""
        if self.loss is None or self.targets is None:
            return []
        buffers = {buffer: buffer.detach().clone() for buffer in self.model.whole.buffers()}
        with torch.no_grad():
            outputs = [self._forward(m, 0, no_pulse) for m in range(len(self.inputs))]
            losses = [float(self.loss(o, t)) for o, t in zip(outputs, self.targets, strict=True)]
            for buffer, before in buffers.items():
                buffer.copy_(before)
        return losses

    def _losses_of(self, outputs: Sequence[torch.Tensor]) -> list[float]:
        if self.loss is None or self.targets is None:
            return []
        return [float(np.mean([float(self.loss(o, t)) for o, t in zip(outputs, self.targets, strict=True)]))]

    def _outcome(self, losses: list[float], sketches: list[Sketch], explained: str) -> Outcome:
        named = self.model.parameters
        gradients = {name: p.grad for name, p in named.items() if p.grad is not None}
        buffers = self.model.buffers()
        return Outcome(losses, gradients, dict(named), None, buffers, sketches, explained)

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
                self.seeds.begin(module, step, stage, micro_batch)
            output = module(*values)
            values = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        result: torch.Tensor = output
        return result

    def _divisor(self, whole: float, mean: float) -> float:
        """n_micro_batches if the loss sums over the batch instead of averaging, else 1."""
        n = len(self.inputs)
        return float(n) if n > 1 and mean and math.isclose(whole / mean, n, rel_tol=1e-3) else 1.0

    def _means(self, whole: float, mean: float) -> str:
        """Why a loss over the whole batch is not the mean over micro-batches, if it is that mean; else nothing."""
        if math.isnan(mean) or math.isclose(whole, mean, rel_tol=self.rounding.of_loss()):
            return ""
        with torch.no_grad():
            losses = self._losses_of([self._forward(m, 0, no_pulse) for m in range(len(self.inputs))])
        if not losses or not math.isclose(losses[0], mean, rel_tol=2 * self.rounding.of_loss()):
            return ""
        return mean_of_means(whole, losses[0])

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


def mean_of_means(whole: float, mean: float) -> str:
    """That micro-batches were averaged each by itself, where they weigh differently."""
    return (
        f"the loss over the whole batch is {whole:.6g}, and {mean:.6g} is the mean over the micro-batches' own means: "
        "they hold different numbers of labels, or the loss looks at its rows together; sum over each micro-batch and "
        "divide by the whole batch's number of labels"
    )
