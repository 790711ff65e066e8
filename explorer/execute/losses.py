"""What a loss may be: a number of outputs and targets, and of nothing else that learns."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch

from explorer.errors import ModelError
from explorer.execute.autograd_graph import nodes_behind
from explorer.execute.checks import Loss, Values

_AnyLoss = TypeVar("_AnyLoss")


def check_loss(loss: Loss, output: Any, target: torch.Tensor, *, trains: bool) -> None:
    """Refuse a loss that gives no scalar, one nothing can be learnt from, or one with parameters of its own.

    Raises:
        ModelError: saying what it gave.
    """
    ways_in = {one.grad_fn for one in _tensors_of(output) if one.grad_fn is not None}  # it may work in place
    try:
        value = loss(output, target)
    except Exception as error:
        shapes = f"outputs {_shape(output)} and targets {_shape(target)}"
        raise ModelError(
            f"the loss takes the model's outputs and the targets; with {shapes} of one micro-batch it raised "
            f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'nothing more'}; "
            "give a loss that fits them",
            argument="loss",
        ) from error
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.ndim:
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ModelError(
            f"a loss gives one number, a tensor of shape (); got {what}; average it over the micro-batch",
            argument="loss",
        )
    if trains and not value.requires_grad:
        raise ModelError(
            "a training program learns from its loss; got one that does not depend on any parameter that requires a "
            "gradient; check requires_grad and that nothing is detached",
            argument="loss",
        )
    foreign = _parameters_besides(value, ways_in, _tensors_of(output)) if trains else []
    if foreign:
        raise ModelError(
            "a loss is of outputs and targets alone, since a run trains a copy of the model; got one that depends on "
            f"{len(foreign)} parameter{'s' if len(foreign) > 1 else ''} besides, the first of shape "
            f"{tuple(foreign[0].shape)}; let the last layer have what is to be trained, and the optimizer what is to "
            "be kept small, as weight_decay",
            argument="loss",
        )


def own_copy(loss: _AnyLoss) -> _AnyLoss:
    """A loss that is a module, of its own: it may count or average what it sees, and the caller's sees nothing."""
    if not isinstance(loss, torch.nn.Module):
        return loss
    try:
        return copy.deepcopy(loss)
    except Exception:  # noqa: BLE001  what it holds cannot be copied; then it is as it was
        return loss


def _parameters_besides(value: torch.Tensor, ways_in: set[Any], outputs: Values) -> list[torch.Tensor]:
    """Leaves that `value` depends on by another way than through the model's outputs."""
    leaves = (getattr(node, "variable", None) for node in nodes_behind(value.grad_fn, stop=ways_in))
    return [leaf for leaf in leaves if leaf is not None and not any(leaf is output for output in outputs)]


def _tensors_of(output: Any) -> Values:
    several = output if isinstance(output, (tuple, list)) else (output,)
    return tuple(one for one in several if isinstance(one, torch.Tensor))


def _shape(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, torch.Tensor) else type(value).__name__
