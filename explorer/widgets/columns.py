"""Trace → the sorted binary columns that the browser draws from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Events, Kind

MS = 1e3  # the browser's unit of time is the axis's: milliseconds
_FINEST = 2.0**-17  # of the whole, still told apart by 24 bits with a margin for zooming in


class Column(NamedTuple):
    """One column as the browser reads it: the name of its type, and its bytes."""

    dtype: str
    data: memoryview


def pack(events: Events, n_ranks: int) -> dict[str, Any]:
    """The events sorted by (rank, kind, start), so that the visible ones are found by bisection.

    Returns:
        `n`, the number of events; `longest` and `end` in ms; `offset`, (n_ranks · n_kinds + 1,), where the events of
        each (rank, kind) begin; and (n,) columns `start`, `duration` and `wait` in ms, `stage`, `micro_batch`
        (65535 where there is none) and `origin`.
    """
    key = events.rank.astype(np.int16) * len(Kind) + events.kind
    order = _order(key, events.start)
    start, duration = events.start[order] * MS, (events.end - events.start)[order] * MS
    end = float(events.end.max(initial=0.0)) * MS
    offset = np.searchsorted(key[order], np.arange(n_ranks * len(Kind) + 1))
    columns = {
        "offset": offset.astype(np.uint32),
        "start": _compact(start, duration, end),
        "duration": duration.astype(np.float32),
        "wait": (events.wait[order] * MS).astype(np.float32),
        "stage": events.stage[order].astype(np.uint16),
        "micro_batch": events.micro_batch[order].astype(np.uint16),
        "origin": events.origin[order].astype(np.uint8),
    }
    packed = {name: _column(column)._asdict() for name, column in columns.items()}
    return {"n": len(events), "longest": float(duration.max(initial=0.0)), "end": end, **packed}


def pack_lines(lines: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]) -> dict[str, Any]:
    """Lines of time and level, one behind the other.

    Returns:
        `n`, the number of lines; `offset`, (n + 1,), where each begins; `time` in ms and `level`, by point.
    """
    columns = {
        "offset": np.cumsum([0, *(len(time) for time, _ in lines)]).astype(np.uint32),
        "time": np.concatenate([np.zeros(0), *(time for time, _ in lines)]).astype(np.float32),
        "level": np.concatenate([np.zeros(0), *(level for _, level in lines)]).astype(np.float32),
    }
    return {"n": len(lines), **{name: _column(column)._asdict() for name, column in columns.items()}}


def _order(key: npt.NDArray[np.int16], start: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """By key, then start. Simulated events come in order of start, and then a radix sort of the keys is enough."""
    order = np.argsort(key, kind="stable")
    sorted_key, sorted_start = key[order], start[order]
    in_order = (np.diff(sorted_start) >= 0) | (np.diff(sorted_key) > 0)
    return order if in_order.all() else np.lexsort((start, key))


def _compact(
    start: npt.NDArray[np.float64], duration: npt.NDArray[np.float64], end: float
) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Half the bytes where that moves no bar by what could be seen of it."""
    shortest = float(duration[duration > 0].min(initial=np.inf))
    return start.astype(np.float32) if shortest > end * _FINEST else start


def _column(column: npt.NDArray[Any]) -> Column:
    return Column(column.dtype.name, np.ascontiguousarray(column).data)
