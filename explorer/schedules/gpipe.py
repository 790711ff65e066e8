"""GPipe: fill, then drain."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Placement, Program
from explorer.schedules.recipe import check_counts, one_stage_a_rank, one_stage_order


def gpipe(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """All forwards, then all backwards; every micro-batch's activations are held at once.

        rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
        rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .
        rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3 .  .

    With equal stages the makespan is (M+P−1)(F+B) + 2(P−1)c for a message time c.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Huang et al. 2019, GPipe, arXiv:1811.06965, figure 2(c); backwards in the order of torch's ScheduleGPipe.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank("gpipe", n_chunks, instead="interleaved_1f1b")
    kinds = np.repeat(np.array([Kind.F, Kind.B], np.int8), n_micro_batches)
    orders = [one_stage_order(rank, kinds) for rank in range(n_ranks)]
    return Program.from_columns("gpipe", Placement.looped(n_ranks), n_micro_batches, orders)
