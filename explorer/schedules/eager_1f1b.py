"""Eager 1F1B: more forwards first, so that messages travel while ranks work."""

from __future__ import annotations

from explorer.core import Program
from explorer.schedules.warm_up import WarmUp, one_stage_1f1b


def eager_1f1b(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, warm_up: WarmUp = 2) -> Program:
    """1F1B with twice the forwards first: messages then travel while their receiver has other work.

        rank 0  F0 F1 F2 F3 F4 B0 F5 B1 .  B2 .  B3 .  B4 .  B5
        rank 1  .  F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5 .
        rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .  .

    Rank r begins with min(2(P−1−r), M) forwards and holds at most 2(P−1−r) + 1 micro-batches. With free messages it
    takes as long as 1f1b, (M+P−1)(F+B); with a message time c up to half of F+B it takes (M+P−1)(F+B) + 2(P−1)c, like
    GPipe, where 1f1b pays for a round trip again every few micro-batches.

    Args:
        n_ranks: any.
        n_micro_batches: any; more than 2(P−1) fill it.
        n_chunks: 1.
        warm_up: how many more forwards each rank begins with than the rank behind it, 1 for 1f1b; or the number for
            every rank, nowhere larger than on the rank before.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, n_chunks is not 1, or the warm-up would hang.

    Source: Zhuang et al. 2022, On Optimizing the Communication of Model Parallelism, arXiv:2211.05322,
        eager-1F1B.
    """
    return one_stage_1f1b("eager_1f1b", n_ranks, n_micro_batches, n_chunks, warm_up)
