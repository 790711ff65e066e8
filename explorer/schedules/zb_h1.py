"""ZB-H1: 1F1B with the weight gradients moved into the bubble; a third of it is left."""

from __future__ import annotations

from explorer.core import Program
from explorer.schedules.split_backward import hand_made


def zb_h1(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """1F1B with weight gradients put where it idles: no more memory, a third of the bubble.

        rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
        rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
        rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3

    Rank r begins with min(P−1−r, M) forwards and keeps r weight gradients back, so every rank holds at most P
    micro-batches, r of which wait only for their W. For M ≥ P, equal stages and W ≤ min(F, I) the longest span of a
    rank is M(F+I+W) + (P−1)(F+I−W); with W > F or W > I it is longer.

    Args:
        n_ranks: any.
        n_micro_batches: any; below n_ranks the pipeline never fills.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 2.1, figure 3 upper half, and
        table 2; B of the paper is I here.
    """
    return hand_made("zb_h1", n_ranks, n_micro_batches, n_chunks, depth=1)
