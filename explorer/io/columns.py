"""Columns of numbers as plain lists that JSON can say, and lists from outside as columns, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.errors import InputError

_INFINITE = "Infinity"  # which JSON has no number for
_SHOWN = 40  # characters of what came


def as_list(column: npt.NDArray[Any], name: str) -> list[Any]:
    """The column as a list.

    Raises:
        InputError: if it holds what is not finite, which no event does.
    """
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise InputError(f"times that are saved are finite; got others in {name}; leave these rows out", argument=name)
    listed: list[Any] = column.tolist()
    return listed


def as_plain(value: Any) -> Any:
    """A number, None or array of any shape as what JSON can say; infinite is a word of its own."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): as_plain(one) for key, one in value.items()}
    listed = value if isinstance(value, (int, float)) else np.asarray(value).tolist()
    return _each(listed, lambda one: _INFINITE if one == np.inf else one)


def from_plain(value: Any) -> Any:
    """What `as_plain` said: lists become arrays."""
    restored = _each(value, lambda one: np.inf if one == _INFINITE else one)
    return np.asarray(restored) if isinstance(restored, list) else restored


def _each(value: Any, change: Any) -> Any:
    return [_each(one, change) for one in value] if isinstance(value, list) else change(value)


def read_whole(value: object, name: str, *, low: int, high: int) -> int:
    """A whole number from `low` to `high`.

    Raises:
        InputError: if it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise unlike(name, f"a whole number from {low:,} to {high:,}", value)
    return value


def read_column(
    values: object, name: str, dtype: str, *, length: int | None = None, low: float = -1, high: float = np.inf
) -> npt.NDArray[Any]:
    """A list as a column of `dtype`, its numbers from `low` to `high`.

    Raises:
        InputError: if it is no list of such numbers, or of another length.
    """
    if not isinstance(values, list):
        raise unlike(name, "a list", values)
    if length is not None and len(values) != length:
        raise InputError(f"{name} is of length {length:,}, as the columns beside it; got {len(values):,}")
    array = _as_numbers(values)
    whole = np.dtype(dtype).kind == "i"
    if array is None or array.ndim != 1 or (whole and array.dtype.kind == "f" and array.size):
        raise InputError(f"{name} is a list of {'whole ' if whole else ''}numbers; got something else in it")
    info_high = min(high, np.iinfo(dtype).max) if whole else high
    inside = (array >= low) & (array <= info_high) & np.isfinite(array)
    if not inside.all():
        place = int(np.flatnonzero(~inside)[0])
        raise InputError(f"{name} is from {low:g} to {info_high:g}; got {str(values[place])[:_SHOWN]} in row {place:,}")
    return array.astype(dtype)


def unlike(name: str, rule: str, came: object) -> InputError:
    """The refusal of something that is not what `name` is."""
    shown = repr(came)[:_SHOWN] if isinstance(came, (int, float, str)) else type(came).__name__
    return InputError(f"{name} is {rule}; got {shown}")


def _as_numbers(values: list[Any]) -> npt.NDArray[Any] | None:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        return None
    return array if array.dtype.kind in "if" else None
