"""Trace → the sorted binary columns that the browser draws from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Events, Kind
from explorer.figures.columns import halved

MS = 1e3  # the browser's unit of time is the axis's: milliseconds
_FINEST = 2.0**-17  # of the whole, still told apart by 24 bits with a margin for zooming in

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
        (65535 where there is none) and `origin`, all but the starts in short: see `_short`.
    """
    key = _key(events)
    order = _order(key, events.start)
    start, duration = events.start[order] * MS, (events.end - events.start)[order] * MS
    end = float(events.end.max(initial=0.0)) * MS
    offset = np.searchsorted(key[order], np.arange(n_ranks * len(Kind) + 1))
    columns: dict[str, npt.NDArray[Any]] = {
        "duration": halved(duration),
        "wait": halved(_without_rounding(events.wait[order] * MS, end)),
        "stage": events.stage[order].astype(np.uint16),
        "micro_batch": events.micro_batch[order].astype(np.uint16),
        "origin": events.origin[order].astype(np.uint8),
    }
    groups = _Groups(offset)
    return {
        "n": len(events),
        "longest": float(duration.max(initial=0.0)),
        "end": end,
        "offset": as_column(offset.astype(np.uint32))._asdict(),
        "start": as_column(_compact(start, duration, end))._asdict(),
        **{name: _short(column, groups, counts=name == "micro_batch") for name, column in columns.items()},
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


class _Groups:
    """The events of each (rank, kind).

    Attributes:
        begins: (n_groups,), place of the first event of each group that has any.
        middles: (n_groups,), place of one in its middle, which is more like the others.
        group: (n,), the group of each event, counted as above.
        place: (n,), an event's place within its group.
    """

    def __init__(self, offset: npt.NDArray[np.int64]) -> None:
        sizes = np.diff(offset)
        some = sizes > 0
        self.begins, sizes = offset[:-1][some], sizes[some]
        self.middles = self.begins + sizes // 2
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        self.place = np.arange(len(self.group)) - self.begins[self.group]


def _short(column: npt.NDArray[Any], groups: _Groups, *, counts: bool) -> dict[str, Any]:
    """A column in which most events of a group are alike, or count on, as what they have in common and the others.

    Returns:
        `base`, a value for each group; `step`, by which the next event of a group is greater, 0 or 1; and `at` and
        `value`, places and values of the events for which that is not so. Or the whole column, where many differ.
    """
    base = column[groups.begins if counts else groups.middles]
    common = base[groups.group]
    if counts:
        common = common + groups.place.astype(column.dtype)
    other = np.flatnonzero(column != common)
    if 2 * len(other) > len(column):
        return as_column(column)._asdict()
    parts = {"base": base, "at": other.astype(np.uint32), "value": column[other]}
    return {"step": int(counts), **{name: as_column(part)._asdict() for name, part in parts.items()}}


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
    start: npt.NDArray[np.float64], duration: npt.NDArray[np.float64], end: float
) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Half the bytes where that moves no bar by what could be seen of it."""
    shortest = float(duration[duration > 0].min(initial=np.inf))
    return halved(start) if shortest > end * _FINEST else start


def as_column(column: npt.NDArray[Any]) -> Column:
    """`column` as the browser reads it."""
    return Column(column.dtype.name, np.ascontiguousarray(column).data)
