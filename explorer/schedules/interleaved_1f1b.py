"""Interleaved 1F1B: several smaller stages a rank, a smaller bubble, more messages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.errors import ScheduleError
from explorer.schedules.recipe import check_counts, warm_up_then_alternate


def interleaved_1f1b(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """1F1B over `n_chunks` stages a rank: the bubble is n_chunks times smaller.

        rank 0  0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1      stages 0 and 2
        rank 1   .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1  .       stages 1 and 3

    Micro-batches go round in groups of P: a rank runs its first stage for P of them, then its second for the same
    ones, and so on. Rank r begins with 2(P−1−r) + (v−1)P forwards. With equal stages and F, B of a rank's share, the
    bubble is (P−1)(F+B)/v.

    Args:
        n_ranks: at least 2; on one rank there is nothing to interleave.
        n_micro_batches: a multiple of n_ranks.
        n_chunks: at least 2; with 1 it would be 1f1b.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2, figure 4; order of Megatron-LM's
        core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    _check_numbers(n_ranks, n_micro_batches, n_chunks)
    n_actions = n_micro_batches * n_chunks
    orders = []
    for rank in range(n_ranks):
        warm_up = min(2 * (n_ranks - 1 - rank) + (n_chunks - 1) * n_ranks, n_actions)
        kinds = warm_up_then_alternate(n_actions, warm_up)
        chunk, micro_batch = (np.empty(2 * n_actions, np.int32) for _ in range(2))
        forward = kinds == Kind.F
        chunk[forward], micro_batch[forward] = _round(n_ranks, n_micro_batches, n_chunks)
        chunk[~forward], micro_batch[~forward] = n_chunks - 1 - chunk[forward], micro_batch[forward]
        orders.append(RankOrder(kinds, chunk * n_ranks + rank, micro_batch))
    return Program.from_columns("interleaved_1f1b", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)


def _round(n_ranks: int, n_micro_batches: int, n_chunks: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Chunk and micro-batch of a rank's k-th forward: groups of P micro-batches, chunk by chunk."""
    k = np.arange(n_micro_batches * n_chunks)
    group, within = np.divmod(k, n_ranks * n_chunks)
    chunk, place = np.divmod(within, n_ranks)
    return chunk, group * n_ranks + place


def _check_numbers(n_ranks: int, n_micro_batches: int, n_chunks: int) -> None:
    if n_chunks < 2:
        raise ScheduleError(
            f"interleaved 1F1B needs n_chunks of at least 2; got {n_chunks}; try 2, or 1f1b",
            argument="n_chunks",
            legal=(2,),
        )
    if n_ranks < 2:
        raise ScheduleError(
            f"interleaved 1F1B needs n_ranks of at least 2; got {n_ranks}; try 2", argument="n_ranks", legal=(2,)
        )
    if n_micro_batches % n_ranks:
        below = n_micro_batches // n_ranks * n_ranks
        legal = tuple(m for m in (below, below + n_ranks) if m)
        legal = tuple(sorted(legal, key=lambda m: abs(m - n_micro_batches)))
        raise ScheduleError(
            f"interleaved 1F1B needs n_micro_batches to be a multiple of n_ranks; "
            f"got {n_micro_batches} and {n_ranks}; try {' or '.join(map(str, legal))}",
            argument="n_micro_batches",
            legal=legal,
        )
