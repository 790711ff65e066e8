"""GIS: interleaved in smaller groups with a shorter warm-up; less memory for a little more bubble."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.limits import check_range
from explorer.schedules.recipe import check_counts, warm_up_then_alternate
from explorer.schedules.rounds import in_rounds


def gis(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2, group_size: int | None = None) -> Program:
    """Interleaved in groups as small as half the ranks, with half of interleaved 1F1B's warm-up: memory for bubble.

        rank 0  0F0  .  2F0 0F1  .  2I0 2W0 2F1 0I0 0W0  .  2I1 2W1 0I1 0W1      stages 0 and 2, groups of 1
        rank 1   .  1F0  .  3F0 3I0 3W0 1F1 1I0 1W0 3F1 3I1 3W1 1I1 1W1  .       stages 1 and 3

    Rank r begins with (v−1)g + P−1−r forwards and holds at most (v−1)g + P−r pairs of stage and micro-batch. Each
    weight gradient follows its input gradient at once. For F = I = W = 1 a stage and M a multiple of g the bubble is
    2(P−1) + (P−g)(v−1).

    Args:
        n_ranks: any.
        n_micro_batches: any; of the last group what is there.
        n_chunks: any; with 1 it is 1f1b with its backward in two.
        group_size: g, from ceil(P/2), where fewer are held, to P, where the bubble is smallest; None for the lowest.

    Raises:
        ScheduleError: if a number is not among these.

    Source: PipeOffload, arXiv:2503.01328, the generalised interleaved schedule; order of
        sail-sg/zero-bubble-pipeline-parallelism, zerobubble/scheduler/group_interleaved_1f1b.py.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    lowest = (n_ranks + 1) // 2
    size = lowest if group_size is None else group_size
    check_counts(group_size=size)
    check_range("GIS", "group_size", size, lowest=lowest, highest=n_ranks)
    orders = [_order(rank, n_ranks, n_micro_batches, n_chunks, size) for rank in range(n_ranks)]
    return Program.from_columns("gis", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)


def _order(rank: int, n_ranks: int, n_micro_batches: int, n_chunks: int, group_size: int) -> RankOrder:
    """The order with the last group full, less the micro-batches that do not exist."""
    whole = -(-n_micro_batches // group_size) * group_size
    n_actions = whole * n_chunks
    kinds = warm_up_then_alternate(n_actions, min((n_chunks - 1) * group_size + n_ranks - 1 - rank, n_actions))
    forward = kinds == Kind.F
    chunk, micro_batch = (np.empty(2 * n_actions, np.int32) for _ in range(2))
    forward_chunk, round_of = in_rounds(group_size, whole, n_chunks)
    chunk[forward], chunk[~forward] = forward_chunk, n_chunks - 1 - forward_chunk
    micro_batch[forward] = micro_batch[~forward] = round_of
    # each B becomes two rows, I and W
    row = np.repeat(np.arange(len(kinds)), np.where(forward, 1, 2))
    second = np.append(False, row[1:] == row[:-1])
    split = np.where(forward[row], Kind.F, np.where(second, Kind.W, Kind.I)).astype(np.int8)
    here = micro_batch[row] < n_micro_batches
    return RankOrder(split[here], (chunk[row] * n_ranks + rank)[here], micro_batch[row][here])
