"""One optimizer a stage, made by the caller's recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from explorer.errors import ModelError
from explorer.execute.stages import CutModel, first_line

MakeOptimizer = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]

_ADVICE = "give a callable that makes one, like lambda parameters: torch.optim.SGD(parameters, lr=0.1)"


def check_optimizer(optimizer: Any) -> None:
    """Refuse what makes no optimizer for the run's own copy of the parameters.

    Raises:
        ModelError: advising a callable.
    """
    if isinstance(optimizer, torch.optim.Optimizer):
        raise ModelError(
            f"a run trains a copy, so it needs an optimizer of its own; got a {type(optimizer).__name__} bound to the "
            f"caller's parameters; {_ADVICE}",
            argument="optimizer",
        )
    if optimizer is not None and not callable(optimizer):
        raise ModelError(
            f"an optimizer is None or a callable; got {type(optimizer).__name__} {optimizer!r}; {_ADVICE}",
            argument="optimizer",
        )


def make_optimizers(optimizer: MakeOptimizer | None, model: CutModel) -> dict[int, torch.optim.Optimizer]:
    """Stage → its optimizer; stages without anything to train have none.

    Raises:
        ModelError: if the callable makes none.
    """
    if optimizer is None:
        return {}
    trained = {s: [p for p in model.of_stage(s) if p.requires_grad] for s in range(len(model.stages))}
    return {stage: _make(optimizer, parameters) for stage, parameters in trained.items() if parameters}


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the tensors an optimizer keeps."""
    tensors = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


def _make(optimizer: MakeOptimizer, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    try:
        made = optimizer(parameters)
    except Exception as error:
        raise ModelError(
            f"the optimizer is called with a stage's parameters; it raised {first_line(error)}; {_ADVICE}",
            argument="optimizer",
        ) from error
    if not isinstance(made, torch.optim.Optimizer):
        raise ModelError(
            f"the optimizer's callable gives a torch.optim.Optimizer; got {type(made).__name__}; {_ADVICE}",
            argument="optimizer",
        )
    given, held = set(map(id, parameters)), {id(p) for group in made.param_groups for p in group["params"]}
    if not held <= given:
        raise ModelError(
            "an optimizer updates the parameters it is called with, once for each stage; this one holds others; "
            f"{_ADVICE}",
            argument="optimizer",
        )
    return made
