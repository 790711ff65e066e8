"""A model cut into stages, and how a place in it is put into words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import nn

from explorer.core import Action, Kind
from explorer.errors import ModelError

Values = tuple[torch.Tensor, ...]


class Chain(nn.Module):
    """Layers one behind the other, as nn.Sequential runs them, remembering which one runs.

    Attributes:
        at: name of the layer that runs, or ran last.
        pulse: called before each layer.
        copies_input: whether it begins with an operation in place, and so works on a copy of its input.
        seed: called with each layer's name before it, where layers draw random numbers.
    """

    def __init__(self, layers: Sequence[tuple[str, nn.Module]]) -> None:
        super().__init__()
        self.names = [name for name, _ in layers]
        self.layers = nn.ModuleList(layer for _, layer in layers)
        self.at = self.names[0] if layers else ""
        self.pulse: Callable[[], None] = no_pulse
        self.copies_input = False
        self.seed: Callable[[str], None] = no_seed

    def forward(self, *values: Any) -> Any:
        """The last layer's output; a tuple goes from layer to layer as it is."""
        if self.copies_input:
            values = tuple(value.clone() for value in values)
        value = values[0] if len(values) == 1 else values
        for name, layer in zip(self.names, self.layers, strict=True):
            self.at = name
            self.pulse()
            self.seed(name)
            value = layer(value)
        return value


class CutModel:
    """A copy of a model, cut.

    Attributes:
        whole: the copy.
        stages: its stages, sharing its parameters.
        parameters: name → parameter, as the caller's model names them.
        stage_of: name → stage.
    """

    def __init__(self, whole: nn.Module, stages: list[nn.Module], parameters: list[dict[str, nn.Parameter]]) -> None:
        self.whole = whole
        self.stages = stages
        self.parameters = {name: parameter for stage in parameters for name, parameter in stage.items()}
        self.stage_of = {name: stage for stage, named in enumerate(parameters) for name in named}

    def of_stage(self, stage: int) -> list[nn.Parameter]:
        """The parameters of one stage."""
        own = (parameter for name, parameter in self.parameters.items() if self.stage_of[name] == stage)
        return list(dict.fromkeys(own))

    @cached_property
    def device(self) -> torch.device:
        """Where the model is; a model without parameters is on the CPU."""
        return next((parameter.device for parameter in self.whole.parameters()), torch.device("cpu"))

    def run_whole(self, values: Values) -> Any:
        """The whole model's output, as the caller's own would give it."""
        if not all(isinstance(stage, Chain) for stage in self.stages):
            return self.whole(*values)
        value: Any = values[0] if len(values) == 1 else values
        for stage in self.stages:
            value = stage(value)
        return value

    def storages(self) -> set[int]:
        """Addresses of all parameters and buffers."""
        held = [*self.whole.parameters(), *self.whole.buffers()]
        held += [tensor for stage in self.stages for tensor in (*stage.parameters(), *stage.buffers())]
        return {tensor.untyped_storage().data_ptr() for tensor in held}

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers, named as the caller's model names them."""
        return {name: tensor.detach() for name, tensor in self.whole.state_dict().items()}

    def buffers(self) -> dict[str, torch.Tensor]:
        """Those that its state holds, named as the caller's model names them."""
        kept = self.state()
        return {name: kept[name] for name, _ in self.whole.named_buffers() if name in kept}

    def layer_at(self, stage: int) -> str:
        """The layer that runs, or ran last, in `stage`."""
        module = self.stages[stage]
        return module.at if isinstance(module, Chain) else ""

    def layers_of(self, stage: int) -> str:
        """Where in the model a stage is, in words."""
        module = self.stages[stage]
        if not isinstance(module, Chain):
            return "in its module"
        first, last = module.names[0], module.names[-1]
        return f"in layer {first}" if first == last else f"in one of layers {first} to {last}"


def refuse_shared(named: Sequence[dict[str, nn.Parameter]]) -> None:
    """Refuse a parameter that belongs to two stages: each stage has weights and an optimizer of its own.

    Raises:
        ModelError: naming both places.
    """
    seen: dict[int, tuple[int, str]] = {}
    for stage, parameters in enumerate(named):
        for name, parameter in parameters.items():
            before, other = seen.setdefault(id(parameter), (stage, name))
            if before != stage:
                raise ModelError(
                    f"a parameter belongs to one stage; {other} of stage {before} and {name} of stage {stage} are the "
                    "same tensor, whose gradients would have to be summed over both; give each its own, or put both "
                    "into one stage",
                    argument="model",
                )


def check_count(n_split_points: int, n_stages: int) -> None:
    """Refuse split points that do not make as many stages as the program has.

    Raises:
        ModelError: naming both numbers.
    """
    if n_split_points + 1 != n_stages:
        raise ModelError(
            f"split_points make one stage more than there are of them, and the program has {n_stages} stages; got "
            f"{n_split_points} split points; name {n_stages - 1}",
            argument="split_points",
        )


def first_line(error: BaseException) -> str:
    """What `error` says, without what follows its first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def describe(action: Action, rank: int, moment: str) -> str:
    """An action, where it runs and when, in words."""
    what = {Kind.F: "forward", Kind.B: "backward", Kind.I: "input gradient", Kind.W: "weight gradient"}[action.kind]
    return f"{action} ({what} of micro-batch {action.micro_batch} in stage {action.stage} on rank {rank}, {moment})"


def no_pulse() -> None:
    """No pulse."""


def no_seed(layer: str) -> None:
    """Nothing random, nothing to seed."""
