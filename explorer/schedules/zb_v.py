"""ZB-V: zero bubble with the memory of 1F1B, on a V of stages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Placement, Program, RankShare
from explorer.schedules.expected import even, expect
from explorer.schedules.legs import by_leg, program_of_legs
from explorer.schedules.limits import check_dialect
from explorer.schedules.memory_limit import check_limit, refuse_limit
from explorer.schedules.recipe import check_counts, two_stages_a_rank
from explorer.schedules.v_search import search


def zb_v(
    *,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int = 2,
    costs: Costs | RankShare | None = None,
    memory_limit: float | None = None,
    dialect: str = "authors",
) -> Program:
    """Two stages a rank, there and back: with F = I = W no rank idles from its first to its last action.

        rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 …
        rank 1   .  1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 …

    Found by a greedy search that knows what actions and messages cost. A rank holds at most `memory_limit`, by default
    what 1F1B's first rank holds: 2P chunk activations. With F = I = W, no latency and M ≥ 2P the longest span of a
    rank is its work, 6M chunk times; ranks are shifted by one, so all idle P−1 of the makespan.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 2.
        costs: what the search expects; None: all actions take the same, messages no time.
        memory_limit: bytes a rank may hold, activations from F until W; None: 2·n_ranks of its largest chunk.
        dialect: "authors" searches; "torch" is the fixed order of torch 2.13's ScheduleZBVZeroBubble.

    Raises:
        ScheduleError: if a count is not among these, there is no such dialect, or nothing fits within the limit.

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 6, figure 7; rules of the
        search as in sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv.py.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    two_stages_a_rank("zb_v", n_chunks)
    check_dialect("zb_v", dialect, ("authors", "torch"))
    if dialect == "torch":
        legs = [_torch_order(rank, n_ranks, n_micro_batches) for rank in range(n_ranks)]
        return program_of_legs("zb_v", legs, n_micro_batches)
    expected = expect(costs, Placement.v_shaped(n_ranks))
    seconds, message, held = by_leg(expected)
    limit = check_limit(memory_limit, 2 * n_ranks * float(held.max()))
    found = search(seconds, message, held, limit, n_micro_batches)
    if found is None:  # greedy by uneven costs it may run into a dead end
        found = search(*by_leg(even(expected)), limit, n_micro_batches)
    if found is None:
        raise refuse_limit("zb_v", limit, 2 * n_ranks * float(held.max()))
    return program_of_legs("zb_v", list(found), n_micro_batches)


def _torch_order(rank: int, n_ranks: int, n_micro_batches: int) -> npt.NDArray[np.int8]:
    """Legs of torch's fixed order, made for at least 2P−1 micro-batches and thinned out for fewer."""
    n = max(2 * n_ranks - 1, n_micro_batches)
    behind = n_ranks - rank
    n_steady, n_new = n - n_ranks, n - (n_ranks - 1 + behind)  # forwards left of leg 1 and of leg 0
    warm_up = [0] * (2 * behind - 1) + [1, 0] * rank + [1, 2, 4] * behind
    steady = [0, 3, 5, 1, 2, 4] * n_new + [3, 5, 1, 2, 4] * (n_steady - n_new)
    cool_down = [3, 2] * rank + [3, 5] * behind
    legs = warm_up + steady + cool_down
    legs += [4] * (n - legs.count(4)) + [5] * (n - legs.count(5))
    return _of_the_first(np.array(legs, np.int8), n_micro_batches)


def _of_the_first(legs: npt.NDArray[np.int8], n_micro_batches: int) -> npt.NDArray[np.int8]:
    """Without the micro-batches from `n_micro_batches` on."""
    kept = np.ones(len(legs), np.bool_)
    for leg in np.unique(legs):
        kept[np.flatnonzero(legs == leg)[n_micro_batches:]] = False
    return legs[kept]
