"""Depth-first: what the breadth-first paper calls Megatron's looped order."""

from __future__ import annotations

from explorer.core import Program
from explorer.schedules.limits import check_fits, check_range
from explorer.schedules.recipe import check_counts
from explorer.schedules.rounds import one_f_one_b_in_rounds


def depth_first(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """Looped stages, each group of P micro-batches taken through all of them before the next group.

        rank 0  0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1      stages 0 and 2
        rank 1   .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1  .       stages 1 and 3

    The counterpart of looped_bfs: a later stage and a backward go first, so less is held, and every weight is used
    M/P times apart rather than once at a stretch. Its authors took Megatron's order for it, so this is
    interleaved_1f1b with group_size P under the paper's name: bubble (P−1)(F+B)/v, and rank r holds at most
    2(P−1−r) + (v−1)P + 1 pairs of stage and micro-batch.

    Args:
        n_ranks: any.
        n_micro_batches: a multiple of n_ranks.
        n_chunks: at least 2; with 1 it would be 1f1b with a longer warm-up.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Lamy-Poirier 2022, Breadth-First Pipeline Parallelism, arXiv:2211.05953, the depth-first
        schedule.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    check_range("depth-first", "n_chunks", n_chunks, lowest=2)
    check_fits(
        "depth-first",
        "n_micro_batches to be a multiple of n_ranks",
        f"{n_micro_batches} and {n_ranks}",
        argument="n_micro_batches",
        value=n_micro_batches,
        fits=lambda m: m % n_ranks == 0,
    )
    return one_f_one_b_in_rounds(
        "depth_first",
        n_ranks=n_ranks,
        n_micro_batches=n_micro_batches,
        n_chunks=n_chunks,
        group_size=n_ranks,
        lead=2,
    )
