"""Forward only: inference, or any assembly line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.errors import ScheduleError, shown
from explorer.schedules.limits import check_dialect
from explorer.schedules.recipe import check_counts, one_stage_a_rank

STREAM = "stream"


def forward_only(
    *, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, dialect: str = STREAM, buffers: int | None = None
) -> Program:
    """Every micro-batch once through all stages, nothing backward.

        rank 0  F0 F1 F2 F3 .  .
        rank 1  .  F0 F1 F2 F3 .
        rank 2  .  .  F0 F1 F2 F3

    With stage times t the makespan is Σt + (M−1)·max t. With several stages a rank, micro-batches go round in
    groups of P; the last group may be smaller.

    The dialect "deepspeed" has the same order, but its sends block: a rank begins the next micro-batch only when the
    rank behind has taken the last one, since there is one buffer to send from and one to receive into.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: any; 1 for "deepspeed".
        dialect: "stream", or "deepspeed".
        buffers: how many finished micro-batches fit between a stage and the next; a stage that finds no room keeps
            its own and cannot begin another. None: any number.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or the dialect does not exist for it.

    Source: DeepSpeed, runtime/pipe/schedule.py, InferenceSchedule; the order of its forwards.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    check_dialect("forward_only", dialect, (STREAM, "deepspeed"))
    if buffers is not None and (not isinstance(buffers, (int, np.integer)) or isinstance(buffers, bool) or buffers < 0):
        raise ScheduleError(
            f"buffers is a whole number of at least 0, or None for any; got {shown(buffers)}; try 1",
            argument="buffers",
            legal=(1,),
        )
    if dialect == "deepspeed":
        one_stage_a_rank("forward_only of DeepSpeed", n_chunks, instead="the dialect stream")
        streamed = forward_only(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
        return replace(streamed, capacities=np.zeros(n_ranks - 1, np.int64))
    all_of = np.arange(n_micro_batches, dtype=np.int32)
    groups = np.split(all_of, range(n_ranks, n_micro_batches, n_ranks)) if n_chunks > 1 else [all_of]
    micro_batch = np.concatenate([group for group in groups for _ in range(n_chunks)])
    chunk = np.concatenate([np.full(len(group), chunk) for group in groups for chunk in range(n_chunks)])
    kinds = np.full(len(micro_batch), Kind.F, np.int8)
    orders = [RankOrder(kinds, (chunk * n_ranks + rank).astype(np.int32), micro_batch) for rank in range(n_ranks)]
    program = Program.from_columns("forward_only", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)
    if buffers is None:
        return program
    return replace(program, capacities=np.full(n_ranks * n_chunks - 1, min(int(buffers), n_micro_batches), np.int64))
