"""What a training is between two steps, by parameter name, so that it goes on however the model is cut."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from explorer.errors import InputError
from explorer.execute.checkpoint_file import read_tensors, write_tensors
from explorer.execute.checkpoint_optimizer import check_optimizer
from explorer.execute.stages import CutModel

OptimizerState = Mapping[str, Mapping[str, Any]]

FORMAT = "pipeline-explorer checkpoint 1"
_STEPS, _SEEDS = range(2**63), range(-(2**63), 2**64)
_SHOWN = 3  # names


@dataclass(frozen=True, eq=False)
class State:
    """A training between two steps.

    Attributes:
        step: how many steps it has done.
        seed: that its random layers count from.
        model: parameters and buffers, named as the caller's model names them.
        optimizer: parameter's name → name → tensor or number.
        optimizer_type: what keeps that, "SGD"; "" where nothing is trained.
    """

    step: int
    seed: int
    model: Mapping[str, torch.Tensor]
    optimizer: OptimizerState = field(default_factory=dict)
    optimizer_type: str = ""

    def write(self, path: Path) -> None:
        """Write it, as a whole or not at all."""
        tensors = {f"model/{name}": tensor for name, tensor in self.model.items()}
        numbers: dict[str, dict[str, Any]] = {}
        for name, values in self.optimizer.items():
            for key, value in values.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer/{name}/{key}"] = value
                else:
                    numbers.setdefault(name, {})[key] = value
        words = {"format": FORMAT, "step": str(self.step), "seed": str(self.seed), "type": self.optimizer_type}
        write_tensors(path, tensors, {**words, "numbers": json.dumps(numbers)})

    @classmethod
    def read(cls, path: Path) -> State:
        """What `write` wrote.

        Raises:
            InputError: if the file is something else, or not whole.
        """
        tensors, words = read_tensors(path)
        if words.get("format") != FORMAT:
            raise _foreign(path, words.get("format", "no format named"))
        step, seed = _whole(path, words, "step", _STEPS), _whole(path, words, "seed", _SEEDS)
        optimizer = _numbers(path, words)
        model = {}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            if part == "model":
                model[name] = tensor
            else:
                name, _, what = name.rpartition("/")
                optimizer.setdefault(name, {})[what] = tensor
        if optimizer and not words.get("type"):
            raise _foreign(path, "not the optimizer whose state it holds")
        check_optimizer(path, optimizer, model, words.get("type", ""))
        return cls(step, seed, model, optimizer, words.get("type", ""))

    def load_into(self, model: CutModel) -> None:
        """Put its parameters and buffers into a model.

        Raises:
            InputError: if names or shapes are another model's.
        """
        own = model.whole.state_dict()
        missing = [name for name in own if name not in self.model]
        unknown = [name for name in self.model if name not in own]
        other = [name for name in own if name in self.model and own[name].shape != self.model[name].shape]
        if missing or unknown or other:
            what = [
                f"{words} {_few(names)}"
                for words, names in (("lacks", missing), ("also has", unknown), ("has another shape of", other))
                if names
            ]
            raise InputError(
                f"a checkpoint is of the model that goes on; this one {', '.join(what)}; give its own, of as "
                "many layers",
                argument="resume",
            )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(self.model[name])


def optimizer_state_by_name(
    optimizers: Iterable[torch.optim.Optimizer], parameters: Mapping[str, torch.Tensor]
) -> dict[str, dict[str, Any]]:
    """What optimizers keep of each parameter, by the parameter's name: momenta, counts.

    Raises:
        InputError: if an optimizer keeps something else than tensors and numbers.
    """
    names = _names(parameters)
    found: dict[str, dict[str, Any]] = {}
    for optimizer in optimizers:
        for parameter, values in optimizer.state.items():
            kept = {key: value for key, value in values.items() if value is not None}
            wrong = next((key for key, value in kept.items() if not _can_be_kept(value)), None)
            if wrong is not None or id(parameter) not in names:
                raise InputError(
                    "a checkpoint keeps what an optimizer has for each parameter in tensors and numbers; "
                    f"{type(optimizer).__name__} has {wrong or 'more parameters'} besides; use SGD, Adam or the like",
                    argument="checkpoint",
                )
            found[names[id(parameter)]] = {key: _on_cpu(value) for key, value in kept.items()}
    return found


def load_optimizer_state(
    optimizers: Iterable[torch.optim.Optimizer], parameters: Mapping[str, torch.Tensor], state: OptimizerState
) -> None:
    """Give optimizers what `optimizer_state_by_name` found, whichever of them has a parameter now."""
    names = _names(parameters)
    for optimizer in optimizers:
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            values = state.get(names[id(parameter)])
            if values is not None:
                optimizer.state[parameter] = {key: _placed(key, value, parameter) for key, value in values.items()}


def type_of(optimizers: Iterable[torch.optim.Optimizer]) -> str:
    """What keeps the state."""
    return " ".join(sorted({type(optimizer).__name__ for optimizer in optimizers}))


def check_type(state: State, found: str) -> None:
    """Refuse to go on with another optimizer than the one whose state was saved.

    Raises:
        InputError: naming both.
    """
    if state.optimizer and found and found != state.optimizer_type:
        raise InputError(
            f"a resumed training keeps its optimizer; the checkpoint has the state of {state.optimizer_type}, got "
            f"{found}; give {state.optimizer_type}",
            argument="optimizer",
        )


def _whole(path: Path, words: Mapping[str, str], what: str, range_: range) -> int:
    """A whole number among the words of a file."""
    try:
        number = int(words.get(what, ""))
    except ValueError:  # also of thousands of digits
        number = range_.start - 1
    if number not in range_:
        raise _foreign(path, f"{words.get(what, 'nothing')[:20]!r} as its {what}")
    return number


def _numbers(path: Path, words: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What an optimizer keeps in plain numbers, by parameter."""
    try:
        found = json.loads(words.get("numbers", ""))
    except (ValueError, RecursionError) as error:
        raise _foreign(path, "no numbers of its optimizer") from error
    held = list(found.values()) if isinstance(found, dict) else [None]
    kept = [value for values in held if isinstance(values, dict) for value in values.values()]
    if not all(isinstance(values, dict) for values in held) or not all(
        isinstance(value, (int, float)) for value in kept
    ):
        raise _foreign(path, "other things than numbers as its optimizer's")
    return {name: dict(values) for name, values in found.items()}


def _names(parameters: Mapping[str, torch.Tensor]) -> dict[int, str]:
    """A parameter's first name."""
    return {id(parameter): name for name, parameter in reversed(list(parameters.items()))}


def _foreign(path: Path, what: str) -> InputError:
    return InputError(
        f"a checkpoint says of itself {FORMAT!r}, a step and a seed; {path.name} has {what[:60]}; give one that "
        "execute(…, checkpoint=…) wrote",
        argument="resume",
    )


def _placed(key: str, value: Any, parameter: torch.Tensor) -> Any:
    """A tensor where its parameter is; counts stay where optimizers want them."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone() if key == "step" else value.to(parameter.device, copy=True)


def _on_cpu(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _can_be_kept(value: Any) -> bool:
    if isinstance(value, (bool, int, float)):
        return not isinstance(value, float) or math.isfinite(value)
    return isinstance(value, torch.Tensor) and not value.is_sparse


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
