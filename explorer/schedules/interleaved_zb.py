"""Interleaved zero bubble: several stages a rank, weight gradients held back; torch's zero-bubble schedule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.errors import ScheduleError
from explorer.schedules.recipe import check_counts
from explorer.schedules.split_backward import forward_input_weight


def interleaved_zb(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """Interleaved 1F1B with half the warm-up, and weight gradients in place of the bubble, as in ZB-H1.

        rank 0  0F0 0F1 2F0 2F1  .  2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
        rank 1   .  1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1

    Micro-batches go round in equal rounds of at least P (all of them if there are fewer). Rank r begins with
    (v−1)·round + P−1−r forwards and keeps r weight gradients back. For M a multiple of P, equal stages and
    F = I = W per stage the bubble is P−1 of one stage's actions, v times smaller than ZB-H1's for a rank's share.

    Args:
        n_ranks: any.
        n_micro_batches: a multiple of the number of rounds, max(1, n_micro_batches // n_ranks).
        n_chunks: any; with 1 it is zb_h1.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Qi et al. 2023, arXiv:2401.10241, section 2.1 (ZB-H1), interleaved as in torch 2.13,
        torch.distributed.pipelining.ScheduleInterleavedZeroBubble.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    _check_rounds(n_ranks, n_micro_batches)
    round_ = n_micro_batches // max(1, n_micro_batches // n_ranks)
    n = n_micro_batches * n_chunks
    chunk, micro_batch = _rounds(n, n_chunks, round_)
    orders = []
    for rank in range(n_ranks):
        warm_up = min((n_chunks - 1) * round_ + n_ranks - 1 - rank, n)
        kind, turn = forward_input_weight(n, warm_up=warm_up, held_back=rank)
        back = kind != Kind.F
        of_chunk = np.where(back, n_chunks - 1 - chunk[turn], chunk[turn])
        stage = (of_chunk * n_ranks + rank).astype(np.int32)
        orders.append(RankOrder(kind, stage, micro_batch[turn].astype(np.int32)))
    return Program.from_columns("interleaved_zb", Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)


def _rounds(n: int, n_chunks: int, round_: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Chunk and micro-batch of a rank's k-th forward: a round of micro-batches chunk by chunk, then the next round."""
    number, within = np.divmod(np.arange(n), round_ * n_chunks)
    chunk, place = np.divmod(within, round_)
    return chunk, number * round_ + place


def _check_rounds(n_ranks: int, n_micro_batches: int) -> None:
    rounds = max(1, n_micro_batches // n_ranks)
    if n_micro_batches % rounds:
        below, above = (_nearest_even_rounds(n_ranks, n_micro_batches, step) for step in (-1, 1))
        legal = tuple(sorted((below, above), key=lambda m: abs(m - n_micro_batches)))
        raise ScheduleError(
            f"interleaved zero bubble goes in rounds of equal size, n_micro_batches // n_ranks = {rounds} of them, so "
            f"n_micro_batches is a multiple of {rounds}; got {n_micro_batches}; try {legal[0]} or {legal[1]}",
            argument="n_micro_batches",
            legal=legal,
        )


def _nearest_even_rounds(n_ranks: int, n_micro_batches: int, step: int) -> int:
    while n_micro_batches % max(1, n_micro_batches // n_ranks):
        n_micro_batches += step
    return n_micro_batches
