"""DualPipe: micro-batches from both ends, forwards of one direction together with backwards of the other."""

from __future__ import annotations

import numpy as np

from explorer.core import Placement, Program, RankOrder
from explorer.errors import ScheduleError
from explorer.schedules.dual import check_streams, two_streams
from explorer.schedules.recipe import check_counts, one_stage_a_rank


def dualpipe(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """Half of the micro-batches enter at each end; where they meet, F of one runs together with B of the other.

        rank 0  0F0 1F2 0F1 1B2 (1F3;0B0) 1B3 0I1 0W1      micro-batches 0, 1 go down
        rank 1  0F2 1F0 0F3 1B0 (1F1;0B2) 1B1 0I3 0W3      2, 3 come up: stage 0 on rank 1

    Each rank keeps two stages, r and P−1−r, so there are two copies of the weights, and at most P+1 micro-batches in
    flight. Micro-batch m of the second half runs stage s on rank P−1−s. With F&B the time of a joined slot the bubble
    of the worst rank is (P/2−1)(F&B + B − 3W), exactly so for F = I = W; elsewhere it may be smaller.

    Args:
        n_ranks: even.
        n_micro_batches: even, at least twice n_ranks.
        n_chunks: 1 for each direction.

    Raises:
        ScheduleError: if a count is not among these.

    Source: DeepSeek-V3 technical report, arXiv:2412.19437, section 3.2.1, figure 5 and table 2 (B is the full
        backward there as here); order of deepseek-ai/DualPipe, dualpipe/dualpipe.py.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank("dualpipe", n_chunks, instead="dualpipev")
    if n_ranks % 2:
        legal = (n_ranks + 1, n_ranks - 1) if n_ranks > 1 else (2,)
        raise ScheduleError(
            f"dualpipe pairs ranks from both ends, so n_ranks is even; got {n_ranks}; "
            f"try {' or '.join(map(str, legal))}",
            argument="n_ranks",
            legal=legal,
        )
    check_streams("dualpipe", n_micro_batches, 2 * n_ranks, even=True)
    half = n_micro_batches // 2
    orders = []
    for rank in range(n_ranks):
        upstream = min(rank, n_ranks - 1 - rank)
        kind, far, turn, joined = two_streams(upstream, n_ranks // 2, half)
        # near stream = the one that enters at this rank's own end of the pipeline
        back = far ^ (rank >= n_ranks // 2)
        stage = np.where(back, n_ranks - 1 - rank, rank).astype(np.int32)
        orders.append(RankOrder(kind, stage, (turn + half * back).astype(np.int32), joined=joined))
    placement = Placement.bidirectional(n_ranks, n_micro_batches)
    return Program.from_columns("dualpipe", placement, n_micro_batches, orders)
