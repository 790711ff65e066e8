"""What DeepSpeed's pipeline engine keeps besides the order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.schedules.recipe import check_counts


def buffers(*, n_ranks: int, n_micro_batches: int, trains: bool = True) -> npt.NDArray[np.int64]:
    """(n_ranks,) activation buffers DeepSpeed makes on each rank: as many as are in flight, but at least two.

    Args:
        n_ranks: any.
        n_micro_batches: any.
        trains: whether backward runs too; inference alternates between two.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1.

    Source: DeepSpeed, runtime/pipe/schedule.py, TrainSchedule.num_pipe_buffers, InferenceSchedule.num_pipe_buffers.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    in_flight = np.minimum(n_ranks - np.arange(n_ranks), n_micro_batches) if trains else np.ones(n_ranks, np.int64)
    return np.maximum(in_flight, 2)
