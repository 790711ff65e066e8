"""PipeDream-2BW: no flush, and two versions of the weights are enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.core import Program
from explorer.schedules.limits import check_range
from explorer.schedules.recipe import check_counts
from explorer.schedules.warm_up import one_stage_1f1b


def pipedream_2bw(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """1F1B without a flush between batches, on two versions of the weights: those of the batch before, and the newest.

        rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .

    The program is one batch of M micro-batches, whose gradients are added up to one new version. A run puts batches
    one behind the other without a gap, so that the idle ends drawn here hold micro-batches of the batches before and
    after: of a run of n batches the bubble is (P−1)/(nM+P−1). Each update is one version late: gradients of version
    t − 1 make version t + 1 out of t.

    Args:
        n_ranks: any.
        n_micro_batches: at least n_ranks; with fewer, micro-batches of three versions would be under way.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not among these.

    Source: Narayanan et al. 2021, Memory-Efficient Pipeline-Parallel DNN Training, arXiv:2006.09503, section 3.1.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    check_range("PipeDream-2BW", "n_micro_batches", n_micro_batches, lowest=n_ranks)
    order = one_stage_1f1b("pipedream_2bw", n_ranks, n_micro_batches, n_chunks, warm_up=1)
    return replace(order, weight_versions=np.full(n_ranks, 2))


def version_used(micro_batch: int, *, n_micro_batches: int) -> int:
    """The version of the weights on which a micro-batch of a run goes forward and backward, from 0.

    Args:
        micro_batch: counted from 1 over all batches of the run.
        n_micro_batches: micro-batches in a batch.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1.

    Source: arXiv:2006.09503, section 3.1: max(floor((k − 1)/m) − 1, 0).
    """
    check_counts(micro_batch=micro_batch, n_micro_batches=n_micro_batches)
    return max((micro_batch - 1) // n_micro_batches - 1, 0)
