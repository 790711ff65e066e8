"""What `explorer execute` trains: a ready model, or one that a function of the user's makes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

from explorer.core import Program
from explorer.errors import InputError, shown


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


def training_of(name: str, program: Program, *, seed: int) -> Training:
    """What `name` says: a ready model, or `module:function`, called without arguments.

    Args:
        name: of the model.
        program: that it is to be cut for.
        seed: of torch's random numbers, from which every process makes the same.

    Raises:
        InputError: if there is no such model, or the function gives none.
    """
    from explorer.execute import READY_MODELS, ready_model
    from explorer.execute.seeding import seed_all

    seed_all(seed)
    if name in READY_MODELS:
        ready = ready_model(name, n_stages=program.n_stages, n_micro_batches=program.n_micro_batches)
        return Training(ready.layers, ready.batch, ready.loss, ready.optimizer)
    made = _function(name, ", ".join(READY_MODELS))()
    if not isinstance(made, tuple) or len(made) not in (3, 4):
        raise InputError(
            f"{name} gives (model, batch, loss), or an optimizer besides; got {type(made).__name__}; give those three"
        )
    return Training(*made)


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
