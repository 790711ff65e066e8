"""An MLP: equal fully connected layers with shortcuts, on vectors labelled by a fixed random direction."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from explorer.execute.models.ready import ReadyModel, count_parameters, seeded


class _Shape(NamedTuple):
    width: int
    rows: int  # in a micro-batch
    layers: int  # in a stage


_SHAPES = {"small": _Shape(320, 96, 2), "medium": _Shape(640, 128, 3), "large": _Shape(1024, 128, 4)}
_LARGEST = 50_000_000
_N_CLASSES = 10


class Residual(nn.Module):
    """Adds to its input what its branch makes of it."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) → the same shape."""
        return x + self.branch(x)  # type: ignore[no-any-return]


def build(n_stages: int, n_micro_batches: int, size: str) -> ReadyModel:
    """A layer a stage, of several residual blocks each; the last also holds the small classifier."""
    shape = _SHAPES[size]
    per_stage = max(min(shape.layers, _LARGEST // (2 * shape.width**2 * n_stages)), 1)
    with seeded():
        stages = [nn.Sequential(*(_block(shape.width) for _ in range(per_stage))) for _ in range(n_stages)]
        stages[-1].append(nn.Linear(shape.width, _N_CLASSES))
        inputs = torch.randn(shape.rows * n_micro_batches, shape.width)
        targets = (inputs @ torch.randn(shape.width, _N_CLASSES)).argmax(dim=1)
    count = count_parameters(stages) / 1e6
    return ReadyModel(
        "mlp",
        list(stages),
        (inputs, targets),
        nn.functional.cross_entropy,
        lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
        f"An MLP of {n_stages * per_stage} residual blocks, {count:.1f} million parameters, that learns to tell "
        f"{_N_CLASSES} classes of random vectors.",
    )


def _block(width: int) -> nn.Module:
    return Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)))
