"""One forward of a model and its loss in a worker, before the caller dares one: code may end the process it runs in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from explorer.execute.checks import Loss, Values

LOSS = ""  # what is reached behind all layers

Tell = Callable[[str, Any], None]


@dataclass(frozen=True)
class Rehearsal:
    """A model's first forward.

    Attributes:
        rank: of the worker.
        path: where modules are looked for.
        dtype: that tensors are made of where none is named.
        model: as the caller has it.
        is_chain: whether its layers are called one behind the other.
        marks: names of the submodules whose calls are told of.
        inputs: of a micro-batch.
        target: of it, or None.
        loss: or None.
        trains: whether gradients are wanted.
    """

    rank: int
    path: list[str]
    dtype: torch.dtype
    model: nn.Module
    is_chain: bool
    marks: Sequence[str]
    inputs: Values
    target: torch.Tensor | None
    loss: Loss | None
    trains: bool

    def run(self, tell: Tell) -> None:
        """Go through it, and tell of each mark before its module runs.

        What it raises is of no interest here: the caller will meet it too, and survive it.
        """
        tell("at", None)  # the model has come, with all that had to be imported for it
        torch.set_default_dtype(self.dtype)
        for name in self.marks:
            self.model.get_submodule(name).register_forward_pre_hook(_telling(tell, name))
        with contextlib.suppress(Exception), torch.set_grad_enabled(self.trains):
            values: Any = self.inputs[0] if len(self.inputs) == 1 else self.inputs
            output = self.model(values) if self.is_chain else self.model(*self.inputs)
            if self.loss is not None and self.target is not None:
                tell("at", LOSS)
                self.loss(output, self.target)


def _telling(tell: Tell, name: str) -> Callable[..., None]:
    def before(*_: Any) -> None:
        tell("at", name)

    return before


def is_foreign(model: nn.Module, loss: Loss | None) -> bool:
    """Whether code of others than torch and this package runs in a forward."""
    return any(map(_is_others, map(type, model.modules()))) or _has_hooks(model) or _is_others(loss)


def _has_hooks(model: nn.Module) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())  # noqa: SLF001


def _is_others(thing: Any) -> bool:
    if isinstance(thing, nn.Module):
        thing = type(thing)
    module = getattr(thing, "__module__", None) or ""
    return thing is not None and module.partition(".")[0] not in {"torch", "explorer"}
