"""The elementary measures of one step, each written once.

Busy time is the union of a rank's compute intervals. A step ends before the optimizer, so U counts for nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import COMPUTE_KINDS, Kind, among
from explorer.core.events import Events, Stream
from explorer.core.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class RankTimes(NamedTuple):
    """When each rank began, ended and worked in a step; a rank that did nothing began at +∞ and ended at −∞.

    Attributes:
        first: (n_ranks,) float64, seconds at which its first action started.
        last: (n_ranks,) float64, seconds at which its last action ended.
        busy: (n_ranks,) float64, seconds in which it computed.
    """

    first: Floats
    last: Floats
    busy: Floats

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end over all ranks, messages apart; 0 if nothing ran."""
        return max(float(self.last.max() - self.first.min()), 0.0)

    @property
    def idle(self) -> Floats:
        """(n_ranks,) seconds of the makespan in which each rank does not compute."""
        return np.asarray(self.makespan - self.busy)

    @property
    def span(self) -> Floats:
        """(n_ranks,) seconds from each rank's own first start to its own last end: Zero Bubble's "cost".

        Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 5.
        """
        return np.asarray(np.maximum(self.last - self.first, 0.0))

    @property
    def bubble_ratio(self) -> float:
        """Idle time as a share of ranks × makespan; 1F1B with equal stages gives (P−1)/(M+P−1).

        Source: GPipe, arXiv:1811.06965, section 2.3.
        """
        total = len(self.busy) * self.makespan
        return float(self.idle.sum() / total) if total else 0.0

    @property
    def bubble_overhead(self) -> float:
        """Idle time over busy time; 1F1B with equal stages gives (P−1)/M.

        Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1.
        """
        busy = float(self.busy.sum())
        return float(self.idle.sum()) / busy if busy else 0.0


def rank_times(events: Events, n_ranks: int) -> RankTimes:
    """When each rank began, ended and worked, from the events of one step."""
    rows = compute_rows(events)
    times = RankTimes(np.full(n_ranks, np.inf), np.full(n_ranks, -np.inf), np.zeros(n_ranks))
    _add_up(events.rank[rows], events.start[rows], events.end[rows], *times)
    return times


def step_seconds(events: Events) -> float:
    """Seconds from the first start to the end of the last optimizer update: a step's makespan, and what follows it."""
    rows = among(events.kind, *COMPUTE_KINDS, Kind.G, Kind.U) & (events.stream == Stream.COMPUTE)
    start, end = events.start[rows], events.end[rows]
    return float(end.max() - start.min()) if len(end) else 0.0


def compute_rows(events: Events) -> Ints:
    """Indices of the rows that keep a rank's device busy within a step, ordered by rank, then start."""
    rows = np.flatnonzero(among(events.kind, *COMPUTE_KINDS, Kind.G) & (events.stream == Stream.COMPUTE))
    return rows[_by_rank_and_time(events.rank[rows], events.start[rows])]


def held(events: Events, *, each_segment: bool = False) -> tuple[Ints, Ints]:
    """Rows at whose start a (stage, micro-batch) is taken up, and rows at whose end one is let go.

    Held from F's start until B's or, after I, W's end; where nothing runs backward, until F's end. Of a cut sequence
    the first segment's F and last backward count, or those of each segment.
    """
    counted = (events.segment == 0) | each_segment
    forward = (events.kind == Kind.F) & counted
    backward = among(events.kind, Kind.B, Kind.W) & counted
    taken, freed = np.flatnonzero(forward), np.flatnonzero(backward if backward.any() else forward)
    return (
        taken[_by_rank_and_time(events.rank[taken], events.start[taken])],
        freed[_by_rank_and_time(events.rank[freed], events.end[freed])],
    )


def peak_in_flight(events: Events, n_ranks: int, *, each_segment: bool = False) -> Ints:
    """(n_ranks,) the most (stage, micro-batch) pairs each rank holds at once, or of each segment.

    An end at the same instant counts before a start.
    """
    taken, freed = held(events, each_segment=each_segment)
    peaks = np.zeros(n_ranks, np.int64)
    _merge(events.rank[taken], events.start[taken], events.rank[freed], events.end[freed], peaks)
    return peaks


def _by_rank_and_time(rank: npt.NDArray[np.int32], time: Floats) -> Ints | slice:
    """What brings rows into order of rank, then time; most traces lie so already."""
    step = np.diff(rank)
    sorted_already = bool(((step > 0) | ((step == 0) & (np.diff(time) >= 0))).all())
    return slice(None) if sorted_already else np.lexsort((time, rank))


@kernel
def _add_up(rank: npt.NDArray[np.int32], start: Floats, end: Floats, first: Floats, last: Floats, busy: Floats) -> None:
    """Fill in each rank's first start, last end and the union of its intervals; rows come by rank, then start."""
    here, until = -1, 0.0
    for i in range(len(rank)):
        if rank[i] != here:
            here, until = rank[i], start[i]
            first[here] = start[i]
        if end[i] > until:
            busy[here] += end[i] - max(start[i], until)
            until = end[i]
        last[here] = max(last[here], until)


@kernel
def _merge(
    rank: npt.NDArray[np.int32], start: Floats, rank_end: npt.NDArray[np.int32], end: Floats, peaks: Ints
) -> None:
    """Walk starts and ends of each rank in order of time and keep the highest count; both come by rank, then time."""
    j, here, count = 0, -1, 0
    for i in range(len(rank)):
        if rank[i] != here:
            here, count = rank[i], 0
            while j < len(rank_end) and rank_end[j] < here:
                j += 1
        while j < len(rank_end) and rank_end[j] == here and end[j] <= start[i]:
            count -= 1
            j += 1
        count += 1
        peaks[here] = max(peaks[here], count)
