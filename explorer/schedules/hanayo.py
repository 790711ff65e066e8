"""Hanayo: stages that run to and fro over the ranks in waves; Chimera's bubble and less, without copies of weights."""

from __future__ import annotations

import numpy as np

from explorer.core import Placement, Program
from explorer.schedules.clocked import by_clock
from explorer.schedules.limits import check_fits
from explorer.schedules.recipe import check_counts


def hanayo(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 2) -> Program:
    """Stages to and fro over the ranks, once a wave: a turn costs no message, and weights are held once.

        rank 0  0F0 0F1  .  3F0 3B0 3F1 3B1 0B0  .  0B1      stages 0 and 3
        rank 1   .  1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1  .       stages 1 and 2

    A wave is two stages a rank, one on the way down and one on the way back. A micro-batch enters every two actions;
    P of them form a unit without a gap between its actions, and units follow each other directly. With F = B of equal
    stages and M a multiple of P the makespan is 2vM + 2(P−1) times F, the bubble (P−1)/(vM+P−1) of the whole. With
    B = 2F every unit leaves a gap of its own: 3vM + 2(P−1)(M/P+1) times F. Rank r holds at most (v−1)P + r + 1 pairs
    of stage and micro-batch.

    Args:
        n_ranks: any.
        n_micro_batches: any; a multiple of n_ranks fills the pipeline.
        n_chunks: even: twice the number of waves.

    Raises:
        ScheduleError: if a number is not among these.

    Source: Liu et al. 2023, Hanayo, arXiv:2308.15762, for the waves. The order is that of a clock on which F and B take
        one tick each, the way Chimera's is made; it was not compared with the authors' own action lists.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    check_fits(
        "Hanayo",
        "n_chunks to be even, two a wave",
        f"{n_chunks}",
        argument="n_chunks",
        value=n_chunks,
        fits=lambda n: n % 2 == 0,
    )
    there = np.arange(n_ranks, dtype=np.int32)
    waves = np.tile(np.concatenate([there, there[::-1]]), n_chunks // 2)
    unit, turn = np.divmod(np.arange(n_micro_batches), n_ranks)
    begin = 2 * turn + 2 * n_chunks * n_ranks * unit
    return by_clock("hanayo", Placement(n_ranks, waves[None]), begin)
