"""PipeDream: 1F1B that never drains, on several versions of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from explorer.core import Program
from explorer.schedules.recipe import check_counts
from explorer.schedules.warm_up import one_stage_1f1b


def pipedream(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1) -> Program:
    """1F1B without a flush: weights change after every backward, so forwards run on versions kept for their backward.

        rank 0  F0 F1 F2 .  .  B0 F3 B1 F4 B2 .  B3 .  B4      keeps 3 versions of its weights
        rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 .  B4 .       2
        rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 .  .       1

    The program is a whole run of M mini-batches, from an empty pipeline to an empty one; there is no step within it,
    as rank r updates its weights after each of its backwards. Its order is that of 1f1b, for the same reason: rank r
    admits P−r of them, then one for each that comes back. So the bubble (P−1)(F+B) is paid once a run, not once a
    step, and (P−1)/(M+P−1) of the time goes to nothing as M grows. Rank r keeps P−r versions of its weights, see
    `weight_versions`. What it learns differs from synchronous training: gradients are up to P−1 updates late.

    Args:
        n_ranks: any.
        n_micro_batches: any; mini-batches of the run.
        n_chunks: 1.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.

    Source: Narayanan et al. 2019, PipeDream, arXiv:1806.03377, sections 3.2 (1F1B) and 3.3 (weight stashing).
    """
    order = one_stage_1f1b("pipedream", n_ranks, n_micro_batches, n_chunks, warm_up=1)
    return replace(order, weight_versions=weight_versions(n_ranks))


def weight_versions(n_ranks: int) -> npt.NDArray[np.int64]:
    """(n_ranks,) versions of its weights each rank keeps: one for each mini-batch it has in flight."""
    return n_ranks - np.arange(n_ranks)


def admitted(replicas: Sequence[int]) -> int:
    """Mini-batches in flight for each replica of the first stage, so that none waits: ceil(machines / first).

    Args:
        replicas: machines of each stage: (9, 5, 1, 1).

    Raises:
        ScheduleError: if a count is not a whole number of at least 1.

    Source: PipeDream, arXiv:1806.03377, section 3.2, NOAM.
    """
    for machines in replicas:
        check_counts(replicas=machines)
    return -(-sum(replicas) // replicas[0])
