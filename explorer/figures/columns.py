"""Columns of a figure as plotly stores them: in as few bytes as tell what they hold."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

_INTEGERS = {"uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "uint32": "u4", "int32": "i4"}
_CODES = {**_INTEGERS, "float32": "f4", "float64": "f8"}
_LARGEST = float(np.finfo(np.float32).max)
_SEEN = 1e-6  # of a bar: less than a pixel until the bar is a million pixels wide


def small_integers(values: npt.NDArray[Any]) -> npt.NDArray[np.integer[Any]]:
    """Whole `values` in the shortest integers that hold them all."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    fitting = (name for name in _INTEGERS if np.iinfo(name).min <= least and most <= np.iinfo(name).max)
    return np.asarray(values, next(fitting))


def short_times(
    times: npt.NDArray[np.float64], durations: npt.NDArray[np.float64]
) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """`times` in half the bytes if that moves none by what can be seen, however far its bar is enlarged."""
    shortest = float(durations[durations > 0].min(initial=np.inf))
    short = halved(times)
    return short if float(np.abs(short - times).max(initial=0.0)) <= _SEEN * shortest else times


def halved(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """`values` in half the bytes, with seven digits, unless they are too large for that."""
    return values.astype(np.float32) if float(np.abs(values).max(initial=0.0)) <= _LARGEST else values


def packed(values: npt.NDArray[Any]) -> dict[str, str]:
    """`values` as plotly writes them: for what its Python side would take apart into objects or texts."""
    spec = {"dtype": _CODES[values.dtype.name], "bdata": base64.b64encode(values.tobytes()).decode("ascii")}
    return spec if values.ndim == 1 else {**spec, "shape": ", ".join(map(str, values.shape))}
