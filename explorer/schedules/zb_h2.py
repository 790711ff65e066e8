"""ZB-H2: no bubble between a rank's first and last action, for twice the activations."""

from __future__ import annotations

from explorer.core import Program
from explorer.schedules.split_backward import hand_made


def zb_h2(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """Twice the warm-up forwards of 1F1B: with F = I = W no rank idles from its first to its last action.

        rank 0  F0 F1 F2 F3 .  I0 W0 I1 W1 I2 W2 I3 W3
        rank 1  .  F0 F1 F2 I0 F3 I1 .  I2 W0 I3 W1 W2 W3
        rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3

    Drawn with M below 2P−1, so that bubbles are left. Rank r begins with min(2(P−1−r), M) forwards and keeps 2r
    weight gradients back, so every rank holds at most 2P−1 micro-batches, 2r of which wait only for their W. For
    M ≥ 2P−1, equal stages and W ≤ min(F, I) the longest span of a rank is M(F+I+W) + (P−1)(F+I−2W). Ranks are
    shifted against each other, so the makespan is longer: the gain needs optimizer steps that do not wait for each
    other (section 4 of the paper).

    Args:
        n_ranks: any.
        n_micro_batches: any; below 2·n_ranks − 1 the pipeline never fills.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 2.2, figure 3 lower half, and
        table 2; B of the paper is I here.
    """
    return hand_made("zb_h2", n_ranks, n_micro_batches, n_chunks, depth=2)
