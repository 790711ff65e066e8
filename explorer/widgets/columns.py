"""Trace → the sorted binary columns that the browser draws from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Events, Kind
from explorer.figures.columns import halved

MS = 1e3  # the browser's unit of time is the axis's: milliseconds
_FINEST = 2.0**-17  # of the whole, still told apart by 24 bits with a margin for zooming in
_DIGITS = 12  # of a start: adding up 10⁶ numbers leaves that many right, and 53 bits hold them

_ROUNDING = 1e-12  # of the whole


class Column(NamedTuple):
    """One column as the browser reads it: the name of its type, and its bytes."""

    dtype: str
    data: memoryview


def pack(events: Events, n_ranks: int) -> dict[str, Any]:
    """The events sorted by (rank, kind, start), so that the visible ones are found by bisection.

    Returns:
        `n`, the number of events; `longest` and `end` in ms; `offset`, (n_ranks · n_kinds + 1,), where the events of
        each (rank, kind) begin; and (n,) columns `start`, `duration` and `wait` in ms, `stage`, `micro_batch`
        (65535 where there is none) and `origin`, in runs where they come so: see `_in_runs`.
    """
    key = _key(events)
    order = _order(key, events.start)
    start, duration = events.start[order] * MS, (events.end - events.start)[order] * MS
    end = float(events.end.max(initial=0.0)) * MS
    offset = np.searchsorted(key[order], np.arange(n_ranks * len(Kind) + 1))
    columns = {
        "duration": halved(duration),
        "wait": halved(_without_rounding(events.wait[order] * MS, end)),
        "stage": events.stage[order].astype(np.uint16),
        "origin": events.origin[order].astype(np.uint8),
    }
    micro_batch = events.micro_batch[order].astype(np.uint16)
    return {
        "n": len(events),
        "longest": float(duration.max(initial=0.0)),
        "end": end,
        "offset": as_column(offset.astype(np.uint32))._asdict(),
        "start": _packed_starts(start, duration, end, offset),
        "micro_batch": _summed(_differences(micro_batch, offset)) or as_column(micro_batch)._asdict(),
        **{name: _in_runs(column) for name, column in columns.items()},
    }


def packed_order(events: Events) -> npt.NDArray[np.int64]:
    """(n_events,) for each place in `pack`'s columns, the event that stands there."""
    return _order(_key(events), events.start)


def pack_lines(lines: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]) -> dict[str, Any]:
    """Lines of time and level, one behind the other.

    Returns:
        `n`, the number of lines; `offset`, (n + 1,), where each begins; `time` in ms and `level`, by point.
    """
    columns = {
        "offset": np.cumsum([0, *(len(time) for time, _ in lines)]).astype(np.uint32),
        "time": halved(np.concatenate([np.zeros(0), *(time for time, _ in lines)])),
        "level": np.concatenate([np.zeros(0), *(level for _, level in lines)]).astype(np.float32),
    }
    return {"n": len(lines), **{name: as_column(column)._asdict() for name, column in columns.items()}}


def _in_runs(column: npt.NDArray[Any]) -> dict[str, Any]:
    """A column in which neighbours are mostly alike, as the browser reads it.

    Returns:
        `at`, the places where another value begins, and `value`, which one; or the whole column, where many do.
    """
    differs = np.ones(len(column), np.bool_)
    differs[1:] = column[1:] != column[:-1]
    at = np.flatnonzero(differs)
    if 2 * len(at) > len(column):
        return as_column(column)._asdict()
    parts = {"at": at.astype(np.uint32), "value": column[at]}
    return {name: as_column(part)._asdict() for name, part in parts.items()}


def _differences(column: npt.NDArray[Any], offset: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Of each value from the one before; the first of each group, which begin at `offset`, is as it was."""
    begins = offset[:-1][np.diff(offset) > 0]
    differences = np.diff(column, prepend=column[:1])
    differences[begins] = column[begins]
    return differences


def _summed(differences: npt.NDArray[Any]) -> dict[str, Any]:
    """Differences in runs, for the browser to add up (`sums`); empty where they do not come in runs."""
    runs = _in_runs(differences)
    return {"sums": 1, **runs} if "at" in runs else {}


def _packed_starts(
    start: npt.NDArray[np.float64], duration: npt.NDArray[np.float64], end: float, offset: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Where operations follow each other evenly, how far apart they begin, which is the same for most.

    In whole numbers, `per_ms` to a millisecond and some 10¹² to the whole: they add up without rounding, so that what
    began together still does. Times that were set have few decimals, so that a power of ten divides them all.
    """
    per_ms = 10.0 ** (_DIGITS - math.ceil(math.log10(end))) if end > 10.0**-_DIGITS else 0.0
    runs = _summed(_differences(np.rint(start * per_ms), offset)) if per_ms else {}
    if runs:
        return {"per_ms": per_ms, **runs}
    shortest = float(duration[duration > 0].min(initial=np.inf))
    return as_column(_compact(start, shortest, end))._asdict()


def _key(events: Events) -> npt.NDArray[np.integer[Any]]:
    """(n_events,) a number for each (rank, kind), as small as can be: numpy sorts 16 bits by radix, twice as fast."""
    key = events.rank.astype(np.int32) * len(Kind) + events.kind
    return key.astype(np.uint16) if key.max(initial=0) < 2**16 else key


def _order(key: npt.NDArray[np.integer[Any]], start: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """By key, then start. Simulated events come in order of start, and then a radix sort of the keys is enough."""
    order = np.argsort(key, kind="stable")
    sorted_key, sorted_start = key[order], start[order]
    in_order = (np.diff(sorted_start) >= 0) | (sorted_key[1:] > sorted_key[:-1])
    return order if in_order.all() else np.lexsort((start, key))


def _without_rounding(wait: npt.NDArray[np.float64], end: float) -> npt.NDArray[np.float64]:
    """Waits that come from adding up times in another order are none."""
    return np.where(wait > end * _ROUNDING, wait, 0.0)


def _compact(
    start: npt.NDArray[np.float64], shortest: float, end: float
) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Half the bytes where that moves no bar by what could be seen of it."""
    return halved(start) if shortest > end * _FINEST else start


def as_column(column: npt.NDArray[Any]) -> Column:
    """`column` as the browser reads it."""
    return Column(column.dtype.name, np.ascontiguousarray(column).data)
