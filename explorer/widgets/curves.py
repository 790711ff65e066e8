"""The lines of the memory row: a few ranks, thinned to what a screen can show."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import Levels, in_flight_over_time, memory_over_time
from explorer.core import Category, Trace
from explorer.figures.units import Unit, bytes_unit

MOST_RANKS = 8
_MOST_POINTS = 600  # a line; about one for two pixels
_MOST_NAMED = 3  # ranks in a sentence
_FAR = 2.5  # times the highest level: a limit beyond is told of, since drawing it would flatten the lines
_MS = 1e3

Floats = npt.NDArray[np.float64]


class Limit(NamedTuple):
    """The line of what each device has.

    Attributes:
        level: in the unit of the axis.
        text: written at it.
    """

    level: float
    text: str


class Curves(NamedTuple):
    """What the memory row shows.

    Attributes:
        title: of its axis.
        ranks: that are drawn.
        lines: time in ms and level, one pair for each of them.
        note: what was left out, who holds too much, or "".
        limit: what a device has, where it is drawn.
    """

    title: str
    ranks: list[int]
    lines: list[tuple[Floats, Floats]]
    note: str
    limit: Limit | None = None

    @property
    def top(self) -> float:
        """The highest level of any line."""
        highest = max((float(level.max(initial=0.0)) for _, level in self.lines), default=0.0)
        return highest if self.limit is None else max(highest, self.limit.level)


def both_curves(
    predicted: Trace | None, measured: Trace | None, *, memory_limit: float = 0.0
) -> tuple[Curves | None, Curves | None]:
    """The memory row of a prediction and of a measurement, in a unit that both have.

    Without a limit it shows what both know of activations, with one all that a rank holds; and where bytes are not
    known, micro-batches in flight.

    Args:
        predicted: a trace, or None.
        measured: a trace, or None.
        memory_limit: bytes of a rank's device; 0: none.
    """
    known = [trace for trace in (predicted, measured) if trace is not None and len(trace.events)]
    of = {id(trace): _levels(trace, known, whole=memory_limit > 0) for trace in known}
    in_bytes = _in_bytes(known, whole=memory_limit > 0)
    unit = bytes_unit(max((float(levels.level.max(initial=0)) for levels in of.values()), default=0.0))
    found: list[Curves | None] = []
    for trace in (predicted, measured):
        if trace is None or id(trace) not in of:
            found.append(None)
        elif not in_bytes:
            found.append(_curves(trace, of[id(trace)], "in flight", 1.0))
        else:
            title = f"{'memory' if memory_limit else 'activations'}, {unit.name}"
            curves = _curves(trace, of[id(trace)], title, unit.factor)
            found.append(_limited(curves, of[id(trace)].peaks(), memory_limit, unit) if memory_limit else curves)
    return found[0], found[1]


def _in_bytes(known: list[Trace], *, whole: bool) -> bool:
    return bool(known) and all(len(trace.memory) > 0 if whole else has_bytes(trace) for trace in known)


def _levels(trace: Trace, known: list[Trace], *, whole: bool) -> Levels:
    """What the row is about: of all ranks where they are held against a limit, else of those drawn."""
    if not _in_bytes(known, whole=whole):
        return in_flight_over_time(_of_ranks(trace, spread(trace.n_ranks)))
    if whole:
        return memory_over_time(trace)
    return memory_over_time(_of_ranks(trace, spread(trace.n_ranks)), category=Category.ACTIVATIONS)


def _curves(trace: Trace, levels: Levels, title: str, factor: float) -> Curves:
    ranks = spread(trace.n_ranks)
    until = float(trace.events.end.max(initial=0.0))
    lines = [_line(levels, rank, factor, until) for rank in ranks]
    left_out = trace.n_ranks - len(ranks)
    note = f"memory row: ranks {', '.join(map(str, ranks))}; {left_out} between them not drawn" if left_out else ""
    return Curves(title, ranks, lines, note)


def _limited(curves: Curves, peaks: npt.NDArray[np.int64], memory_limit: float, unit: Unit) -> Curves:
    """The curves with the device's line, if that is near, and a sentence of who holds more."""
    of_device = bytes_unit(memory_limit).show(memory_limit)
    over = over_in_words(peaks, memory_limit)
    near = memory_limit * unit.factor <= _FAR * curves.top
    limit = Limit(memory_limit * unit.factor, f"device memory, {of_device}") if near else None
    far = "" if near or not curves.top else f"Device memory, {of_device}, lies far above this axis"
    said = [f"More than the device has: {over}" if over else far, curves.note]
    return curves._replace(limit=limit, note=" · ".join(filter(None, said)))


def over_in_words(peaks: npt.NDArray[np.int64], memory_limit: float) -> str:
    """By how much ranks hold more than their device has, the fullest first; "" if none does.

    Args:
        peaks: (n_ranks,) bytes.
        memory_limit: bytes.
    """
    order = np.argsort(-peaks, kind="stable")
    over = [int(rank) for rank in order if peaks[rank] > memory_limit]
    words = [
        f"rank {rank} by {bytes_unit(excess).show(excess)}"
        for rank, excess in ((rank, float(peaks[rank] - memory_limit)) for rank in over[:_MOST_NAMED])
    ]
    left = len(over) - len(words)
    return ", ".join([*words, f"{left} more"] if left else words)


def _of_ranks(trace: Trace, ranks: list[int]) -> Trace:
    """What happened on these ranks only, where there are others."""
    if len(ranks) == trace.n_ranks:
        return trace
    chosen = np.zeros(trace.n_ranks, np.bool_)
    chosen[ranks] = True
    events, memory = trace.events, trace.memory
    return replace(trace, events=events.take(chosen[events.rank]), memory=memory.take(chosen[memory.rank]))


def has_bytes(trace: Trace) -> bool:
    """Whether the trace knows how much memory activations take."""
    return bool((trace.memory.category == Category.ACTIVATIONS).any())


def spread(n_ranks: int) -> list[int]:
    """All ranks, or at most eight from the first to the last."""
    n = min(n_ranks, MOST_RANKS)
    return sorted({round(rank) for rank in np.linspace(0, n_ranks - 1, n).tolist()})


def thin(time: Floats, level: Floats, most: int = _MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points that keep the highest and the lowest of each stretch: peaks stay what they are."""
    n_stretches = most // 2
    if len(time) <= most:
        return time, level
    edges = np.linspace(0, len(time), n_stretches + 1).astype(np.int64)[:-1]
    length = np.diff(np.append(edges, len(time)))
    high, low = np.maximum.reduceat(level, edges), np.minimum.reduceat(level, edges)
    middle = time[edges + length // 2]
    return np.stack([time[edges], middle], axis=1).reshape(-1), np.stack([high, low], axis=1).reshape(-1)


def _line(levels: Levels, rank: int, factor: float, until: float) -> tuple[Floats, Floats]:
    time, level = levels.of(rank)
    if not len(time):
        return np.zeros(0), np.zeros(0)
    changes = np.diff(level, prepend=level[0] - 1) != 0  # as much taken as given back in one moment is none
    time, level = time[changes], level[changes]
    when = np.concatenate([[min(0.0, float(time[0]))], time, [max(until, float(time[-1]))]]) * _MS
    scaled = level * factor
    return thin(when, np.concatenate([[0.0], scaled, scaled[-1:]]))
