"""Reading what `explore` is given."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from explorer.errors import InputError
from explorer.execute import READY_MODELS
from explorer.schedules import REGISTRY
from explorer.widgets.models import OwnModel
from explorer.widgets.settings import Settings
from explorer.widgets.where import KERNEL, PROCESSES


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
        InputError: if there is no such setting, model or schedule.
    """
    known = [field.name for field in fields(Settings)]
    for name in given:
        if name not in known:
            raise InputError(f"explore takes {', '.join(known)}; got {name}; {_near(name, known)}", argument=name)
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


def _near(value: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else "choose one of these"
