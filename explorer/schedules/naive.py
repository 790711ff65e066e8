"""One micro-batch at a time: what model parallelism is without a pipeline."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program
from explorer.schedules.recipe import check_counts, one_stage_a_rank, one_stage_order


def naive(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """One micro-batch at a time through all stages and back; all other ranks wait.

        rank 0  F0 .  .  .  .  B0 F1 .  .  .  .  B1
        rank 1  .  F0 .  .  B0 .  .  F1 .  .  B1 .
        rank 2  .  .  F0 B0 .  .  .  .  F1 B1 .  .

    Each rank works 1/P of the time, whatever the number of micro-batches. Micro-batch m + 1 begins when the first
    stage has ended its backward of m, since every rank's order is F0 B0 F1 B1 …

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Huang et al. 2019, GPipe, arXiv:1811.06965, figure 2(b), "naive model parallelism".
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank("naive", n_chunks, instead="interleaved_1f1b")
    kinds = np.tile(np.array([Kind.F, Kind.B], np.int8), n_micro_batches)
    orders = [one_stage_order(rank, kinds) for rank in range(n_ranks)]
    return Program.from_columns("naive", Placement.looped(n_ranks), n_micro_batches, orders)
