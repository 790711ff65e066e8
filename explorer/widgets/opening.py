"""Reading what `explore` is given."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from explorer.errors import InputError
from explorer.execute import READY_MODELS
from explorer.schedules import REGISTRY
from explorer.widgets.models import OwnModel
from explorer.widgets.settings import Settings
from explorer.widgets.where import KERNEL, PROCESSES

_SIZES = ("activation_bytes", "recompute_bytes", "parameter_bytes", "memory_limit")
_MOST_BYTES = 1e15  # as in Costs
_LEAST = {"forward": 1e-9, "bandwidth": 1e-9, "slow_factor": 1.0, "long_factor": 1.0}  # of numbers; of others 0
_MOST = {"kept_share": 1.0, "weight_share": 1.0}  # of others _LARGEST
_LARGEST = 1e15


def read_own_model(model: Any, given: Mapping[str, Any]) -> OwnModel | None:
    """The user's model; None if it is a ready one.

    Raises:
        InputError: if batch or loss is missing, or given without a model.
    """
    if model is None or isinstance(model, str):
        if given:
            name = next(iter(given))
            raise InputError(
                f"{name} belongs to a model of your own; got model={model!r}; give the model", argument=name
            )
        return None
    for name in ("batch", "loss"):
        if name not in given:
            raise InputError(f"a model of your own needs batch and loss; {name} is missing; add it", argument=name)
    return OwnModel(model, **given)


def read_settings(model: str | None, given: Mapping[str, Any]) -> Settings:
    """The settings to begin with.

    Raises:
        InputError: if there is no such setting, model or schedule, a size is no bytes, or a number is none.
    """
    known = [field.name for field in fields(Settings)]
    for name in given:
        if name not in known:
            raise InputError(f"explore takes {', '.join(known)}; got {name}; {_near(name, known)}", argument=name)
    reals = {field.name: field.default for field in fields(Settings) if isinstance(field.default, float)}
    given = {
        name: _size(name, value) if name in _SIZES else _real(name, value, reals[name]) if name in reals else value
        for name, value in given.items()
    }
    for field in fields(Settings):
        _check_kind(field.name, given.get(field.name, field.default), field.default)
    settings = Settings(**given) if model is None else Settings(model=model, **given)
    _check_choice("model", settings.model, [*READY_MODELS, "own"])
    _check_choice("schedule", settings.schedule, list(REGISTRY))
    for name in ("n_ranks", "n_micro_batches", "n_steps", "n_chunks"):
        _check_count(name, getattr(settings, name))
    return settings


def read_backend(backend: str | None) -> str | None:
    """Where ranks of a run work.

    Raises:
        InputError: if that is no place.
    """
    if backend is not None:
        _check_choice("backend", backend, [KERNEL, PROCESSES])
    return backend


def _check_choice(name: str, value: object, known: list[str]) -> None:
    if value not in known:
        raise InputError(f"{name} is one of {', '.join(known)}; got {value!r}; {_near(value, known)}", argument=name)


def _check_count(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InputError(f"{name} is a whole number of at least 1; got {value!r}; try 1", argument=name, legal=(1,))


def _check_kind(name: str, value: object, usual: object) -> None:
    """Refuse what is no text, or no whole number, where the setting is one."""
    for kind, words in ((str, "a text"), (int, "a whole number")):
        if isinstance(usual, kind) and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InputError(f"{name} is {words}; got {str(value)[:40]!r}; try {usual!r}", argument=name)


def _size(name: str, value: Any) -> float:
    """`value`, if it is bytes; no limit may also be None."""
    if value is None and name == "memory_limit":
        return 0.0
    if not _is_number(value) or not 0 <= value <= _MOST_BYTES:
        raise InputError(
            f"{name} is bytes, from 0 to {_MOST_BYTES:g}; got {str(value)[:40]!r}; try 80e9", argument=name
        )
    return float(value)


def _real(name: str, value: Any, usual: float) -> float:
    """`value`, if it is a number that a control can stand at."""
    least, most = _LEAST.get(name, 0.0), _MOST.get(name, _LARGEST)
    is_endless = name == "bandwidth" and value == math.inf
    if not is_endless and (not _is_number(value) or not least <= value <= most):
        raise InputError(
            f"{name} is a number from {least:g} to {most:g}; got {str(value)[:40]!r}; try {usual:g}",
            argument=name,
        )
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _near(value: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else "choose one of these"
