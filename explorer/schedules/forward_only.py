"""Forward only: inference, or any assembly line."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.recipe import check_counts


def forward_only(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """Every micro-batch once through all stages, nothing backward.

        rank 0  F0 F1 F2 F3 .  .
        rank 1  .  F0 F1 F2 F3 .
        rank 2  .  .  F0 F1 F2 F3

    With stage times t the makespan is Σt + (M−1)·max t. With several stages a rank, micro-batches go round in
    groups of P; the last group may be smaller.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: any.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1.

    Source: DeepSpeed, runtime/pipe/schedule.py, InferenceSchedule; the order of its forwards.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    all_of = np.arange(n_micro_batches, dtype=np.int32)
    groups = np.split(all_of, range(n_ranks, n_micro_batches, n_ranks)) if n_chunks > 1 else [all_of]
    micro_batch = np.concatenate([group for group in groups for _ in range(n_chunks)])
    chunk = np.concatenate([np.full(len(group), chunk) for group in groups for chunk in range(n_chunks)])
    kinds = np.full(len(micro_batch), Kind.F, np.int8)
    orders = [RankOrder(kinds, (chunk * n_ranks + rank).astype(np.int32), micro_batch) for rank in range(n_ranks)]
    return Program.from_columns("forward_only", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)
