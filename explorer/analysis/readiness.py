"""Which of a rank's own actions could have run in an idle interval, had the program's order let it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.gaps import Gaps
from explorer.analysis.network import Role
from explorer.analysis.timed import TimedStep
from explorer.core import Kind, kernel
from explorer.core.action import among

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class Ready(NamedTuple):
    """The action of a rank that was ready first, of those behind an idle interval.

    Attributes:
        since: (n_gaps,) float64, seconds at which all that it waits for was there; ∞ = none was.
        node: (n_gaps,) int64, which it is; −1 = none.
    """

    since: Floats
    node: Indices


def ready_in(step: TimedStep, gaps: Gaps) -> Ready:
    """What could have run in each gap.

    A forward takes memory, so it counts only where the rank held less than it holds at most in the step: a
    schedule that bounds its activations is not blamed for doing so. What runs backward gives memory back and counts
    always.
    """
    network, program = step.network, step.network.program
    first = program.slot_offsets[:-1]
    kind = program.kind[first]
    since = _ready_since(step)[network.node_of_slot]
    forward, backward = kind == Kind.F, among(kind, Kind.B, Kind.I, Kind.W)
    offsets = program.rank_offsets
    soonest = [_behind(offsets, np.where(of, since, np.inf)) for of in (forward, backward)]
    slot = np.where(gaps.after >= 0, network.slot[gaps.after], -1)
    there = slot >= 0
    held, most = _held(step, slot, gaps.rank)
    candidates = []
    for behind, allowed in zip(soonest, (there & (held < most), there), strict=True):
        place = np.where(allowed, behind[np.maximum(slot, 0)], -1)
        candidates.append((place, np.where(place >= 0, since[place], np.inf)))
    (f, since_f), (b, since_b) = candidates
    place, when = np.where(since_f < since_b, f, b), np.minimum(since_f, since_b)
    return Ready(when, np.where(place >= 0, network.node_of_slot[place], -1))


def _ready_since(step: TimedStep) -> Floats:
    """(n_nodes,) seconds at which all that each node waits for, but for its rank's order, was there; NaN = unknown."""
    edges, n = step.network.edges, step.network.n_nodes
    ready = np.full(n, step.begin)
    needed = edges.role != Role.ORDER
    _latest(edges.offsets, edges.source, edges.early, needed, step.lag, step.start, step.end, ready)
    return ready


@kernel
def _latest(
    offsets: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32],
    early: npt.NDArray[np.bool_],
    needed: npt.NDArray[np.bool_],
    lag: Floats,
    start: Floats,
    end: Floats,
    ready: Floats,
) -> None:
    for k in range(len(ready)):
        for e in range(offsets[k], offsets[k + 1]):
            if needed[e]:
                arrival = (start[source[e]] if early[e] else end[source[e]]) + lag[e]
                if not arrival <= ready[k]:  # also where a source did not run
                    ready[k] = arrival


@kernel
def _behind(offsets: Indices, since: Floats) -> Indices:
    """(n_slots,) of the slots behind each on its rank, the one that was ready first; −1 = none."""
    soonest = np.full(len(since), -1, np.int64)
    for rank in range(len(offsets) - 1):
        best = -1
        for slot in range(offsets[rank + 1] - 1, offsets[rank] - 1, -1):
            soonest[slot] = best
            if since[slot] < np.inf and (best < 0 or since[slot] <= since[best]):
                best = slot
    return soonest


def _held(step: TimedStep, slot: Indices, rank: Indices) -> tuple[Indices, Indices]:
    """(n_gaps,) how many forwards a rank holds just before `slot`, and the most it ever does."""
    program = step.network.program
    change = (program.kind == Kind.F).astype(np.int64)
    if program.has_backward:
        change -= among(program.kind, Kind.B, Kind.W)
    total = np.concatenate([[0], np.cumsum(change)])
    before = total[program.slot_offsets[:-1]]  # of all ranks before, too
    base = before[np.minimum(program.rank_offsets[:-1], max(program.n_slots - 1, 0))]
    after = total[program.slot_offsets[1:]] - base[program.rank_of_slot]
    most = np.zeros(program.n_ranks, np.int64)
    np.maximum.at(most, program.rank_of_slot, np.maximum(after, 0))
    if not program.has_backward:
        return np.zeros(len(slot), np.int64), np.ones(len(slot), np.int64)
    return before[np.maximum(slot, 0)] - base[rank], most[rank]
