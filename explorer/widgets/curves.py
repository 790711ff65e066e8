"""The lines of the memory row: a few ranks, thinned to what a screen can show."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import Levels, in_flight_over_time, memory_over_time
from explorer.core import Category, Trace

MOST_RANKS = 8
_MOST_POINTS = 600  # a line; about one for two pixels
_MIB = 2.0**20
_MS = 1e3

Floats = npt.NDArray[np.float64]


class Curves(NamedTuple):
    """What the memory row shows.

    Attributes:
        title: of its axis.
        ranks: that are drawn.
        lines: time in ms and level, one pair for each of them.
        note: what was left out, or "".
    """

    title: str
    ranks: list[int]
    lines: list[tuple[Floats, Floats]]
    note: str

    @property
    def top(self) -> float:
        """The highest level of any line."""
        return max((float(level.max(initial=0.0)) for _, level in self.lines), default=0.0)


def curves(trace: Trace, *, in_bytes: bool) -> Curves:
    """Activation memory of a few ranks in MiB, or their micro-batches in flight.

    Args:
        trace: any.
        in_bytes: whether to show bytes; asked for only where the trace has them.
    """
    ranks = spread(trace.n_ranks)
    drawn = _of_ranks(trace, ranks)
    levels = memory_over_time(drawn, category=Category.ACTIVATIONS) if in_bytes else in_flight_over_time(drawn)
    scale = _MIB if in_bytes else 1.0
    until = float(trace.events.end.max(initial=0.0))
    lines = [_line(levels, rank, scale, until) for rank in ranks]
    title = "activations, MiB" if in_bytes else "in flight"
    left_out = trace.n_ranks - len(ranks)
    note = f"memory row: ranks {', '.join(map(str, ranks))}; {left_out} between them not drawn" if left_out else ""
    return Curves(title, ranks, lines, note)


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
    return [int(rank) for rank in np.unique(np.rint(np.linspace(0, n_ranks - 1, n)))]


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


def _line(levels: Levels, rank: int, scale: float, until: float) -> tuple[Floats, Floats]:
    time, level = levels.of(rank)
    if not len(time):
        return np.zeros(0), np.zeros(0)
    when = np.concatenate([[min(0.0, float(time[0]))], time, [max(until, float(time[-1]))]]) * _MS
    scaled = level / scale
    return thin(when, np.concatenate([[0.0], scaled, scaled[-1:]]))
