"""The elementary measures of one step, each written once.

Busy time is the union of a rank's compute intervals. A step ends before the optimizer, so U counts for nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core.action import COMPUTE_KINDS, Kind
from explorer.core.events import Events, Stream
from explorer.core.kernels import kernel

Floats = npt.NDArray[np.float64]


def compute_rows(events: Events) -> npt.NDArray[np.int64]:
    """Indices of the rows that keep a rank's device busy within a step, ordered by rank, then start."""
    working = np.isin(events.kind, (*COMPUTE_KINDS, Kind.G)) & (events.stream == Stream.COMPUTE)
    rows = np.flatnonzero(working)
    rank, start = events.rank[rows], events.start[rows]
    step = np.diff(rank)
    sorted_already = bool(((step > 0) | ((step == 0) & (np.diff(start) >= 0))).all())
    return rows if sorted_already else rows[np.lexsort((start, rank))]


def makespan(events: Events) -> float:
    """Seconds from the first start to the last end over all ranks, messages apart; 0 if nothing ran."""
    rows = compute_rows(events)
    return float(events.end[rows].max() - events.start[rows].min()) if len(rows) else 0.0


def busy_per_rank(events: Events, n_ranks: int) -> Floats:
    """(n_ranks,) seconds in which each rank computes."""
    rows = compute_rows(events)
    busy = np.zeros(n_ranks)
    _union(events.rank[rows], events.start[rows], events.end[rows], busy)
    return busy


def idle_per_rank(events: Events, n_ranks: int) -> Floats:
    """(n_ranks,) seconds of the makespan in which each rank does not compute."""
    return makespan(events) - busy_per_rank(events, n_ranks)


def span_per_rank(events: Events, n_ranks: int) -> Floats:
    """(n_ranks,) seconds from each rank's own first start to its own last end: Zero Bubble's "cost".

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 5.
    """
    rows = compute_rows(events)
    first, last = np.full(n_ranks, np.inf), np.full(n_ranks, -np.inf)
    np.minimum.at(first, events.rank[rows], events.start[rows])
    np.maximum.at(last, events.rank[rows], events.end[rows])
    return np.maximum(last - first, 0.0)


def bubble_ratio(events: Events, n_ranks: int) -> float:
    """Idle time as a share of ranks × makespan; 1F1B with equal stages gives (P−1)/(M+P−1).

    Source: GPipe, arXiv:1811.06965, section 2.3.
    """
    total = n_ranks * makespan(events)
    return float(idle_per_rank(events, n_ranks).sum() / total) if total else 0.0


def bubble_overhead(events: Events, n_ranks: int) -> float:
    """Idle time over busy time; 1F1B with equal stages gives (P−1)/M.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1.
    """
    busy = float(busy_per_rank(events, n_ranks).sum())
    return float(idle_per_rank(events, n_ranks).sum()) / busy if busy else 0.0


def in_flight_changes(events: Events) -> tuple[npt.NDArray[np.int32], Floats, npt.NDArray[np.int64]]:
    """When a (stage, micro-batch) is taken up and let go: rank, time in seconds, +1 or −1, in order of each rank.

    Held from F's start until B's or, after I, W's end; where nothing runs backward, until F's end. An end at the
    same instant counts before a start. Of a cut sequence the first segment's F and last backward count.
    """
    kind = events.kind
    trains = bool(np.isin(kind, (Kind.B, Kind.W)).any())
    first = (kind == Kind.F) & (events.segment == 0)
    last = (np.isin(kind, (Kind.B, Kind.W)) & (events.segment == 0)) if trains else first
    rank = np.concatenate([events.rank[first], events.rank[last]])
    time = np.concatenate([events.start[first], events.end[last]])
    change = np.repeat(np.array([1, -1]), [first.sum(), last.sum()])
    order = np.lexsort((change, time, rank))
    return rank[order], time[order], change[order]


def peak_in_flight(events: Events, n_ranks: int) -> npt.NDArray[np.int64]:
    """(n_ranks,) the most (stage, micro-batch) pairs each rank holds at once."""
    rank, _, change = in_flight_changes(events)
    running = np.cumsum(change)
    ends = np.searchsorted(rank, np.arange(n_ranks + 1))
    before = np.concatenate([[0], running])[ends[:-1]]
    return np.array(
        [
            int((running[a:b] - start).max(initial=0))
            for a, b, start in zip(ends[:-1], ends[1:], before, strict=True)
        ],
        np.int64,
    )


@kernel
def _union(rank, start, end, busy):  # type: ignore[no-untyped-def]
    """Add the length of the union of each rank's intervals to `busy`; rows come by rank, then start."""
    here, until = -1, 0.0
    for i in range(len(rank)):
        if rank[i] != here:
            here, until = rank[i], start[i]
        if end[i] > until:
            busy[here] += end[i] - max(start[i], until)
            until = end[i]
