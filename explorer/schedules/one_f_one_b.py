"""1F1B: as GPipe in time, with at most P micro-batches in memory."""

from __future__ import annotations

from explorer.core import Program
from explorer.schedules.limits import check_dialect, check_range
from explorer.schedules.recipe import check_counts
from explorer.schedules.warm_up import WarmUp, one_stage_1f1b


def one_f_one_b(
    *, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, warm_up: WarmUp = 1, dialect: str = "megatron"
) -> Program:
    """A forward and a backward in turn, after just enough forwards to fill the pipeline.

        rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .

    Rank r begins with min(P−1−r, M) forwards and holds at most P−r micro-batches. With equal stages the makespan is
    (M+P−1)(F+B) + (2(P−1) + 2·floor((M−1)(P−1)/P))c for a message time c, as long as c is small.

    Every dialect has this order. "torch" begins no step with fewer micro-batches than ranks; "deepspeed" keeps two
    buffers a rank where one would do, see `deepspeed.buffers`.

    Args:
        n_ranks: any.
        n_micro_batches: any; below n_ranks the pipeline never fills, and torch refuses.
        n_chunks: 1.
        warm_up: how many more forwards each rank begins with than the rank behind it, 0 for naive, 2 for eager_1f1b;
            or the number for every rank, nowhere larger than on the rank before.
        dialect: "megatron", "torch" or "deepspeed".

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, n_chunks is not 1, the warm-up would hang, or
            the dialect does not exist for these numbers.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1, figure 3 (PipeDream-Flush); the same order as
        DAPPLE, arXiv:2007.01045, as DeepSpeed, runtime/pipe/schedule.py, TrainSchedule, and as torch 2.13 runs
        Schedule1F1B (not as it exports it: that table lacks F0 on the last rank).
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    check_dialect("1f1b", dialect, ("megatron", "torch", "deepspeed"))
    if dialect == "torch":
        check_range("torch's 1F1B", "n_micro_batches", n_micro_batches, lowest=n_ranks)
    return one_stage_1f1b("1f1b", n_ranks, n_micro_batches, n_chunks, warm_up)
