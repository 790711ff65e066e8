"""A convolutional net: equal residual blocks on small pictures of bars, whose direction is the class."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import nn

from explorer.execute.models.mlp import Residual
from explorer.execute.models.ready import ReadyModel, count_parameters, seeded


class _Shape(NamedTuple):
    channels: int
    pictures: int  # in a micro-batch
    blocks: int  # in a stage


_SHAPES = {"small": _Shape(24, 12, 1), "medium": _Shape(64, 8, 2), "large": _Shape(192, 8, 4)}
_LARGEST = 50_000_000
_SIDE = 16  # pixels
_N_CLASSES = 8


class _Head(nn.Module):
    """Mean over the picture, then a small classifier."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.classes = nn.Linear(channels, _N_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(pictures, channels, side, side) → (pictures, classes)."""
        return self.classes(x.mean(dim=(2, 3)))  # type: ignore[no-any-return]


def build(n_stages: int, n_micro_batches: int, size: str) -> ReadyModel:
    """A layer a stage; the first also takes the picture in, the last also names its class."""
    shape = _SHAPES[size]
    blocks = max(min(shape.blocks, _LARGEST // (18 * shape.channels**2 * n_stages)), 1)
    with seeded():
        stages = [nn.Sequential(*(_block(shape.channels) for _ in range(blocks))) for _ in range(n_stages)]
        stages[0].insert(0, nn.Conv2d(1, shape.channels, 3, padding=1))
        stages[-1].append(_Head(shape.channels))
        batch = _bars(shape.pictures * n_micro_batches)
    count = count_parameters(stages) / 1e6
    return ReadyModel(
        "conv",
        list(stages),
        batch,
        nn.functional.cross_entropy,
        lambda parameters: torch.optim.Adam(parameters, lr=2e-3),
        f"A convolutional net of {n_stages * blocks} residual blocks, {count:.1f} million parameters, that learns the "
        f"direction of bars in pictures of {_SIDE} × {_SIDE} pixels.",
    )


def _block(channels: int) -> nn.Module:
    """Group normalisation looks at each picture alone, so micro-batches change nothing."""
    return Residual(
        nn.Sequential(
            nn.GroupNorm(4, channels),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )
    )


def _bars(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, 1, side, side) waves of one of the directions, with noise; (n,) which."""
    targets = torch.arange(n) % _N_CLASSES
    angle = targets[:, None, None] * (math.pi / _N_CLASSES)
    y, x = torch.meshgrid(torch.arange(_SIDE), torch.arange(_SIDE), indexing="ij")
    phase = torch.rand(n, 1, 1) * 2 * math.pi
    pictures = torch.sin(x * torch.cos(angle) + y * torch.sin(angle) + phase)
    return (pictures + 0.3 * torch.randn(n, _SIDE, _SIDE))[:, None], targets
