"""DualPipeV: DualPipe cut in half, on a V of stages, so that the weights are kept once."""

from __future__ import annotations

import numpy as np

from explorer.core import Placement, Program, RankOrder
from explorer.schedules.dual import check_streams, two_streams
from explorer.schedules.recipe import check_counts, two_stages_a_rank


def dualpipev(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """DualPipe's order on a V: the way back of a micro-batch takes the place of the other direction.

        rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3
        rank 1  1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0) (1F3;2B1) (2F3;1B1) 2B2 1B2 2I3 1I3 2W3 1W3

    Rank r holds stages r and 2P−1−r, one copy of the weights, and at most 2P+1 chunk activations. With F&B the
    time of a joined slot, all per stage, the bubble of the worst rank is (P−1)(F&B + B − 3W), exactly so for
    F = I = W; elsewhere it may be smaller.

    Args:
        n_ranks: any.
        n_micro_batches: at least twice n_ranks, the number of stages.
        n_chunks: 2.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Qi et al. 2025, DualPipe could be better without the Dual (sea-ai-lab, "cut in half"); order of
        deepseek-ai/DualPipe, dualpipe/dualpipev.py, and of torch's ScheduleDualPipeV.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    two_stages_a_rank("dualpipev", n_chunks)
    check_streams("dualpipev", n_micro_batches, 2 * n_ranks, even=False)
    orders = []
    for rank in range(n_ranks):
        kind, far, turn, joined = two_streams(rank, n_ranks, n_micro_batches)
        stage = np.where(far, 2 * n_ranks - 1 - rank, rank).astype(np.int32)
        orders.append(RankOrder(kind, stage, turn.astype(np.int32), joined=joined))
    return Program.from_columns("dualpipev", Placement.v_shaped(n_ranks), n_micro_batches, orders)
