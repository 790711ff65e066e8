"""Looped breadth-first: every stage for all micro-batches at a stretch."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.recipe import check_counts


def looped_bfs(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """Looped stages, each run for all micro-batches before the next: small bubble, most memory, few weight gathers.

        rank 0  0F0 0F1 2F0 2F1  .  .  2B1 2B0 0B1 0B0      stages 0 and 2
        rank 1   .  1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0  .      stages 1 and 3

    Weights of a stage are used in one stretch forward and one backward, so sharded weights are gathered once each.
    Everything is held: v·M pairs of stage and micro-batch. With equal stages and F, B of a rank's share, the
    makespan is (v·max(M,P) + min(M,P) − 1)(F+B)/v; for M ≥ P the bubble is (P−1)(F+B)/v.

    Args:
        n_ranks: any.
        n_micro_batches: any; below n_ranks each round of the loop waits for the first.
        n_chunks: any; with 1 it is gpipe, backwards in reverse.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1.

    Source: Lamy-Poirier 2022, Breadth-First Pipeline Parallelism, arXiv:2211.05953, the breadth-first schedule;
        backwards from the last micro-batch to the first, as torch 2.13's ScheduleLoopedBFS has them.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    chunk, micro_batch = np.divmod(np.arange(n_chunks * n_micro_batches), n_micro_batches)
    kinds = np.repeat(np.array([Kind.F, Kind.B], np.int8), len(chunk))
    chunk, micro_batch = (np.concatenate([column, column[::-1]]).astype(np.int32) for column in (chunk, micro_batch))
    orders = [RankOrder(kinds, chunk * n_ranks + rank, micro_batch) for rank in range(n_ranks)]
    return Program.from_columns("looped_bfs", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)
