"""How far two right results may be apart: rounding alone, from the number format and the size of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from explorer.execute.stages import CutModel, Values

_SAFETY = 4.0  # over a random walk; measured: 0.2 for losses, 0.4 for gradients, 1 for those after Adam's steps
_MOST = 0.1
_MOST_LOSS = 0.02
_BLOCKS = 64  # sums that stand for a gradient

Sketch = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Rounding:
    """What rounding may do to a result of a model in one number format.

    Errors of independent operations add up as a random walk does, with the square root of their number; within one
    operation, which sums in blocks, with the logarithm of its length. Each update hands a step's error on to the next.

    Attributes:
        epsilon: of the coarsest format that a result of the model had.
        depth: operations one behind the other.
        length: the most numbers that one operation sums.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.8 (random walk) and 4.2
        (pairwise summation).
    """

    epsilon: float = torch.finfo(torch.float32).eps
    depth: int = 16
    length: int = 16

    def of_loss(self, step: int = 0) -> float:
        """Relative, of the loss of a step."""
        return min(_SAFETY * self.epsilon * math.sqrt(max(self.depth, 1)) * (1 + 4 * step), _MOST_LOSS)

    def of_tensors(self, step: int = 0) -> float:
        """Relative to their norm, of gradients, parameters, buffers and outputs in a step."""
        per_operation = 1 + math.log2(max(self.length, 1))
        return min(_SAFETY * self.epsilon * math.sqrt(max(self.depth, 1)) * per_operation * (1 + step), _MOST)

    @property
    def noise(self) -> float:
        """Of the largest gradient: what is smaller may be nothing but rounding."""
        return min(100 * self.epsilon, _MOST)


def rounding_of(model: CutModel, inputs: Sequence[Values], *, epsilon: float, depth: int) -> Rounding:
    """For a model and its batch."""
    fan_in = max((p.numel() // max(p.shape[0], 1) for p in model.whole.parameters() if p.ndim > 1), default=1)
    # a weight's gradient sums over all rows, and over a sequence's or picture's places
    places = max((value.numel() // max(*value.shape[1:], 1) for value in inputs[0] if value.ndim > 1), default=1)
    return Rounding(epsilon, depth, max(fan_in, places * len(inputs)))


def sketch_of(parameters: Mapping[str, torch.nn.Parameter]) -> Sketch:
    """Name → its gradient's norm and the sums of its blocks: what tells two gradients apart without keeping them."""
    return {name: _sums(p.grad.detach()) for name, p in parameters.items() if p.grad is not None}


def norm_of(tensors: Sequence[torch.Tensor]) -> float:
    """The norm of all of them as if they were one: the square root of the sum of their squares."""
    return math.sqrt(sum(norm(tensor) ** 2 for tensor in tensors))


def norm(tensor: torch.Tensor) -> float:
    """Of one, in at least 32 bits."""
    value = tensor.detach()
    if not value.is_floating_point() or value.dtype.itemsize < 4:
        value = value.float()
    return float(torch.linalg.vector_norm(value))


def _sums(gradient: torch.Tensor) -> torch.Tensor:
    flat = gradient.reshape(-1).float() if gradient.dtype.itemsize < 4 else gradient.reshape(-1)
    blocks = flat.new_zeros(_BLOCKS + 1)
    size = len(flat) // _BLOCKS
    if size:
        blocks[1:] = flat[: size * _BLOCKS].view(_BLOCKS, size).sum(1)
    rest = flat[size * _BLOCKS :]
    blocks[1 : 1 + len(rest)] += rest
    blocks[0] = torch.linalg.vector_norm(flat)
    return blocks.cpu()
