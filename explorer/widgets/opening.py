"""Reading what `explore` is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from explorer.errors import InputError
from explorer.widgets.models import OwnModel
from explorer.widgets.opening_fields import check_choice, nearest, read_fields
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
        InputError: if there is no such setting, or one begins with what its control cannot stand at.
    """
    known = [field.name for field in fields(Settings)]
    for name in given:
        if name not in known:
            raise InputError(f"explore takes {', '.join(known)}; got {name}; {nearest(name, known)}", argument=name)
    return Settings(**read_fields(given if model is None else {**given, "model": model}))


def read_backend(backend: str | None) -> str | None:
    """Where ranks of a run work.

    Raises:
        InputError: if that is no place.
    """
    if backend is not None:
        check_choice("backend", backend, [KERNEL, PROCESSES])
    return backend
