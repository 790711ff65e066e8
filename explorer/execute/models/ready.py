"""What a ready model is, and a generator of its own for its weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

SIZES = ("small", "medium", "large")


@dataclass(frozen=True, eq=False)
class ReadyModel:
    """Layers, batch, loss and optimizer that fit each other.

    Attributes:
        name: "mlp", "conv" or "gpt".
        layers: one a stage; the first takes the inputs, the last gives what the loss compares.
        batch: inputs and targets; the first dimension is the batch.
        loss: outputs, targets → their mean loss.
        optimizer: parameters → optimizer, by which the loss falls from step to step.
        description: one sentence: what it is, on what data, how many parameters.
    """

    name: str
    layers: list[nn.Module]
    batch: tuple[torch.Tensor, torch.Tensor]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
    description: str

    @property
    def n_parameters(self) -> int:
        """Number of parameters of all layers."""
        return count_parameters(self.layers)


def count_parameters(layers: Iterable[nn.Module]) -> int:
    """Number of parameters of `layers`."""
    return sum(parameter.numel() for layer in layers for parameter in layer.parameters())


@contextlib.contextmanager
def seeded() -> Iterator[None]:
    """Within it random numbers are the same every time; the caller's generator does not notice."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(20240229)
        yield
