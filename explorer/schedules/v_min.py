"""V-Min: a third of 1F1B's activation memory, on a V of stages."""

from __future__ import annotations

import numpy as np

from explorer.core import Program
from explorer.schedules.building_block import repeat_block
from explorer.schedules.legs import program_of_legs
from explorer.schedules.recipe import check_counts, two_stages_a_rank


def v_min(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """A building block that returns as fast as it can, so that a rank holds a third of what 1F1B holds.

        block on 2 ranks, one chunk time a column; begun again every six
        rank 0  0F .  .  3F 3I .  .  0I
        rank 1  .  1F 2F .  .  2I 1I .

    Rank r begins its four passes at r, 2P−r−1, 2P+d+r and 4P+d−r−1 chunk times, d = 2 for P a multiple of 3, else 0;
    W lies where it is empty. For M ≥ 2P a rank holds at most (P+4)//3 micro-batches, two chunks each. With F = I = W
    the repeated part has no idle time; where they differ it has, since all ranks wait for each other.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 2.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv:2405.15362, section 3.3 and table 1.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    two_stages_a_rank("v_min", n_chunks)
    rank, p = np.arange(n_ranks), n_ranks
    gap = 2 if p % 3 == 0 else 0  # or two passes of a rank would fall into the same cell of a period
    block = np.stack([rank, 2 * p - rank - 1, 2 * p + gap + rank, 4 * p + gap - rank - 1], axis=1)
    return program_of_legs("v_min", repeat_block(block, n_micro_batches), n_micro_batches)
