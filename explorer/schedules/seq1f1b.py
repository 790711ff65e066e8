"""Seq1F1B: 1F1B over pieces of sequences, so a smaller bubble and less memory without more stages."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.limits import check_range
from explorer.schedules.recipe import MOST_PAIRS, check_counts, one_stage_a_rank, warm_up_then_alternate


def seq1f1b(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, n_segments: int = 2) -> Program:
    """1F1B with every sequence cut into `n_segments`, run forward in order and backward from the last.

        rank 0  F0.0 F0.1 F1.0  .   B0.1 F1.1 B0.0  .   B1.1 B1.0
        rank 1   .   F0.0 F0.1 B0.1 F1.0 B0.0 F1.1 B1.1 B1.0  .

    A segment's attention needs the keys of those before it, so forwards go up and backwards go down. Rank r begins
    with min(P−2−r+k, M·k) forwards and holds at most P−1−r+k segments. With segments of equal time f forward and b
    backward the makespan is (M·k+P−1)(f+b): the bubble (P−1)(F+B)/k of a micro-batch's F and B.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 1.
        n_segments: k, any; with 1 it is 1f1b.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Seq1F1B, arXiv:2406.03488, equations (3) to (5); order of
        sail-sg/zero-bubble-pipeline-parallelism, zerobubble/scheduler/seq1f1b.py.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_segments=n_segments)
    most = max(1, MOST_PAIRS // (n_ranks * n_micro_batches))
    check_range("Seq1F1B", "n_segments", n_segments, lowest=1, highest=most)  # what memory holds
    one_stage_a_rank("seq1f1b", n_chunks, instead="interleaved_1f1b")
    n_actions = n_micro_batches * n_segments
    turn_micro_batch, turn_segment = np.divmod(np.arange(n_actions, dtype=np.int32), np.int32(n_segments))
    orders = []
    for rank in range(n_ranks):
        kinds = warm_up_then_alternate(n_actions, min(n_ranks - 2 - rank + n_segments, n_actions))
        forward = kinds == Kind.F
        micro_batch, segment = (np.empty(2 * n_actions, np.int32) for _ in range(2))
        micro_batch[forward] = micro_batch[~forward] = turn_micro_batch
        segment[forward], segment[~forward] = turn_segment, n_segments - 1 - turn_segment
        orders.append(RankOrder(kinds, np.full(len(kinds), rank, np.int32), micro_batch, segment))
    placement = Placement.looped(n_ranks)
    return Program.from_columns("seq1f1b", placement, n_micro_batches, orders, n_segments=int(n_segments))
