"""What `explorer execute` trains: a ready model, or one that a function of the user's makes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

from explorer.core import Program
from explorer.errors import InputError, shown

_MOST_LAYERS = 4096


class Training(NamedTuple):
    """A model with what it is trained on.

    Attributes:
        model: layers, or a module.
        batch: inputs and targets.
        loss: of outputs and targets.
        optimizer: parameters → optimizer, or None.
    """

    model: Any
    batch: Any
    loss: Any
    optimizer: Any = None


def training_of(name: str, program: Program, *, seed: int, n_layers: int | None = None) -> Training:
    """What `name` says: a ready model, or `module:function`, called without arguments.

    Args:
        name: of the model.
        program: that it is to be cut for.
        seed: of torch's random numbers, from which every process makes the same.
        n_layers: of a ready model; None for one a stage.

    Raises:
        InputError: if there is no such model, it cannot have so many layers, or the function gives none.
    """
    from explorer.execute import READY_MODELS, ready_model
    from explorer.execute.seeding import seed_all

    seed_all(seed)
    if n_layers is not None:
        _check_layers(n_layers, program.n_stages, name if name not in READY_MODELS else "")
    if name in READY_MODELS:
        n_parts = program.n_stages if n_layers is None else n_layers
        ready = ready_model(name, n_stages=n_parts, n_micro_batches=program.n_micro_batches)
        return Training(ready.layers, ready.batch, ready.loss, ready.optimizer)
    made = _function(name, ", ".join(READY_MODELS))()
    if not isinstance(made, tuple) or len(made) not in (3, 4):
        raise InputError(
            f"{name} gives (model, batch, loss), or an optimizer besides; got {type(made).__name__}; give those three"
        )
    return Training(*made)


def _check_layers(n_layers: int, n_stages: int, own: str) -> None:
    if own:
        raise InputError(
            f"--layers is of a ready model; got {n_layers} for {shown(own)}, which has its own; leave it out"
        )
    if not n_stages <= n_layers <= _MOST_LAYERS:
        raise InputError(
            f"--layers is a whole number from the number of stages to {_MOST_LAYERS}; got {n_layers} for {n_stages} "
            f"stages; try {n_stages}"
        )


def _function(name: str, ready: str) -> Any:
    place, colon, function = name.partition(":")
    if not (place and colon and function):
        raise InputError(f"--model is one of {ready}, or module:function; got {shown(name)}; try gpt")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as for a script that lies there
    try:
        found = getattr(importlib.import_module(place), function, None)
    except ModuleNotFoundError as error:
        if error.name != place.partition(".")[0] and error.name != place:
            raise
        raise InputError(
            f"--model {name} is of a module that Python finds; there is no {place}; run where it lies"
        ) from None
    if not callable(found):
        raise InputError(f"--model {name} names a function; {place} has no {shown(function)}; look at its spelling")
    return found
