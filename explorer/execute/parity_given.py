"""What a user says of a step of their own, checked before it is compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from explorer.errors import InputError


def numbers(given: Any, argument: str) -> list[float]:
    """One number, or each of several, as floats.

    Args:
        given: a number, a tensor or array of them, or a list.
        argument: what it was given as.

    Raises:
        InputError: if it is none of these, or empty.
    """
    try:
        values = given.tolist() if isinstance(given, (torch.Tensor, np.ndarray, np.generic)) else given
        listed = [float(value) for value in (values if isinstance(values, (list, tuple)) else [values])]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        listed = []
    if not listed or isinstance(given, (str, bytes)):
        raise InputError(
            f"{argument} is one number, or a list of numbers; got {_told(given)}; give what .item() gives",
            argument=argument,
        )
    return listed


def check_tensors(given: Any, argument: str) -> None:
    """Refuse what is not name → tensor.

    Raises:
        InputError: saying what came.
    """
    if not isinstance(given, Mapping):
        came = _told(given)
    else:
        odd = [f"{_told(value)} for {name}" for name, value in given.items() if not isinstance(value, torch.Tensor)]
        if not odd:
            return
        came = odd[0]
    raise InputError(
        f"{argument} are name → tensor; got {came}; give dict(module.named_{argument}())", argument=argument
    )


def check_count(number: Any, argument: str) -> None:
    """Refuse what is no whole number of at least 1.

    Raises:
        InputError: saying what came.
    """
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise InputError(
            f"{argument} is a whole number of at least 1; got {number!r}; try 1", argument=argument, legal=(1,)
        )


def _told(value: Any) -> str:
    """What came, in few words."""
    return type(value).__name__ if len(repr(value)) > 40 else repr(value)
