"""V-Half: half of 1F1B's activation memory, on a V of stages."""

from __future__ import annotations

import numpy as np

from explorer.core import Program
from explorer.schedules.building_block import repeat_block
from explorer.schedules.legs import program_of_legs
from explorer.schedules.recipe import check_counts, two_stages_a_rank


def v_half(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """A building block whose forwards go there at half speed, so that a rank holds half of what 1F1B holds.

        block on 2 ranks, one chunk time a column; begun again every six
        rank 0  0F .  .  .  3F .  .  .  3I .  .  .  .  0I
        rank 1  .  .  1F 2F .  .  .  .  .  .  2I .  1I .

    Rank r begins its four passes at 2r, 3P−r−2, 3P+d+2r−1 and 6P+d−r−2 chunk times, d = 3 for even P, else 0; W
    lies where it is empty. For M ≥ 2P a rank holds at most (P+2)//2 micro-batches, two chunks each. The bubble is
    smaller than 1F1B's, but larger than ZB-V's.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 2.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv:2405.15362, section 3.3 and table 1.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    two_stages_a_rank("v_half", n_chunks)
    rank, p = np.arange(n_ranks), n_ranks
    gap = 3 if p % 2 == 0 else 0  # or two passes of a rank would fall into the same cell of a period
    block = np.stack([2 * rank, 3 * p - rank - 2, 3 * p + gap + 2 * rank - 1, 6 * p + gap - rank - 2], axis=1)
    return program_of_legs("v_half", repeat_block(block, n_micro_batches), n_micro_batches)
