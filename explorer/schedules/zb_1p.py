"""ZB-1P: zero-bubble order searched for real costs within the memory of 1F1B."""

from __future__ import annotations

from explorer.core import Costs, Program, RankShare
from explorer.schedules.within_limit import searched


def zb_1p(
    *,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int = 1,
    costs: Costs | RankShare | None = None,
    memory_limit: float | None = None,
    weight_share: float = 1.0,
) -> Program:
    """The best order a greedy search finds for real seconds, latency and bytes, within what 1F1B's first rank holds.

        rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
        rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
        rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3

    With F = I = W and no latency it is as long as ZB-H1, M(F+I+W) + (P−1)F, and for M ≤ P, W < I and equal stages
    (M+P−1)(F+I) + W (appendix H).

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 1.
        costs: what the search expects; None: all actions take the same, messages no time.
        memory_limit: bytes a rank may hold; None: n_ranks times its largest stage.
        weight_share: how much of a micro-batch's bytes its weight gradient still needs after I, 0 to 1.

    Raises:
        ScheduleError: if a count is not among these, or nothing fits within the limit.

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 3.1, table 5.
    """
    limits = {"memory_limit": memory_limit, "weight_share": weight_share}
    return searched("zb_1p", n_ranks, n_micro_batches, n_chunks, costs=costs, times_1f1b=1, **limits)
