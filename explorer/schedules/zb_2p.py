"""ZB-2P: zero-bubble order searched for real costs within twice the memory of 1F1B."""

from __future__ import annotations

from explorer.core import Costs, Program, RankShare
from explorer.schedules.within_limit import searched


def zb_2p(
    *,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int = 1,
    costs: Costs | RankShare | None = None,
    memory_limit: float | None = None,
    weight_share: float = 1.0,
) -> Program:
    """The best order a greedy search finds for real seconds, latency and bytes, in twice 1F1B's memory.

        rank 0  F0 F1 F2 F3 F4 I0 F5 W0 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5
        rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 W0 I4 W1 I5 W2 W3 W4 W5
        rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 W0 W1 W2 W3 W4 W5

    With F = I = W, no latency and M ≥ 2P no rank idles from its first to its last action. Like ZB-H2 the ranks are
    shifted against each other, so the makespan is longer by P−1 of these times.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        n_chunks: 1.
        costs: what the search expects; None: all actions take the same, messages no time.
        memory_limit: bytes a rank may hold; None: 2·n_ranks times its largest stage.
        weight_share: how much of a micro-batch's bytes its weight gradient still needs after I, 0 to 1.

    Raises:
        ScheduleError: if a count is not among these, or nothing fits within the limit.

    Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241, section 3.1, table 5.
    """
    limits = {"memory_limit": memory_limit, "weight_share": weight_share}
    return searched("zb_2p", n_ranks, n_micro_batches, n_chunks, costs=costs, times_1f1b=2, **limits)
