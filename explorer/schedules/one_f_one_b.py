"""1F1B: as GPipe in time, with at most P micro-batches in memory."""

from __future__ import annotations

from explorer.core import Placement, Program
from explorer.schedules.recipe import check_counts, one_stage_a_rank, one_stage_order, warm_up_then_alternate


def one_f_one_b(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """A forward and a backward in turn, after just enough forwards to fill the pipeline.

        rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .

    Rank r begins with min(P−1−r, M) forwards and holds at most P−r micro-batches. With equal stages the makespan is
    (M+P−1)(F+B) + (2(P−1) + 2·floor((M−1)(P−1)/P))c for a message time c, as long as c is small.

    Args:
        n_ranks: any.
        n_micro_batches: any; below n_ranks the pipeline never fills.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1, figure 3 (PipeDream-Flush); the same order as
        DAPPLE, arXiv:2007.01045.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank("1f1b", n_chunks, instead="interleaved_1f1b")
    orders = [
        one_stage_order(rank, warm_up_then_alternate(n_micro_batches, min(n_ranks - 1 - rank, n_micro_batches)))
        for rank in range(n_ranks)
    ]
    return Program.from_columns("1f1b", Placement.looped(n_ranks), n_micro_batches, orders)
