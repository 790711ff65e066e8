"""The way of a micro-batch through a V of stages, in six legs, and programs made of them.

leg  0  F there: ranks 0 … P−1, stages 0 … P−1
     1  F back:  ranks P−1 … 0, stages P … 2P−1
     2  I there: ranks 0 … P−1, stages 2P−1 … P
     3  I back:  ranks P−1 … 0, stages P−1 … 0
     4  W of leg 2's stages
     5  W of leg 3's stages
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.expected import Expected, Floats

N_LEGS = 6
_KIND = np.array([Kind.F, Kind.F, Kind.I, Kind.I, Kind.W, Kind.W], np.int8)
_FULL = np.array([Kind.F, Kind.F, Kind.B, Kind.B, Kind.W, Kind.W], np.int8)
_SECOND_HALF = np.array([False, True, True, False, True, False])  # of the model, stages P … 2P−1


def program_of_legs(
    name: str, legs: list[npt.NDArray[np.int8]], n_micro_batches: int, *, split: bool = True
) -> Program:
    """The program in which each rank runs these legs in order, each leg through the micro-batches from 0 on.

    Args:
        name: of the schedule.
        legs: one array a rank.
        n_micro_batches: in a step.
        split: whether legs 2 and 3 are input gradients only; without legs 4 and 5 they are whole backwards.
    """
    n_ranks = len(legs)
    kinds = _KIND if split else _FULL
    orders = []
    for rank, of_rank in enumerate(legs):
        micro_batch = np.empty(len(of_rank), np.int32)
        for leg in range(N_LEGS):
            rows = np.flatnonzero(of_rank == leg)
            micro_batch[rows] = np.arange(len(rows))
        stage = np.where(_SECOND_HALF[of_rank], 2 * n_ranks - 1 - rank, rank).astype(np.int32)
        orders.append(RankOrder(kinds[of_rank], stage, micro_batch))
    return Program.from_columns(name, Placement.v_shaped(n_ranks), n_micro_batches, orders)


def by_leg(expected: Expected) -> tuple[Floats, Floats, Floats]:
    """Of each leg: seconds (6, n_ranks), seconds its input is on the way (4, n_ranks), bytes it begins (2, n_ranks)."""
    n_ranks = expected.seconds.shape[1] // 2
    stages = np.arange(n_ranks)
    stage_of = np.where(_SECOND_HALF[:, None], 2 * n_ranks - 1 - stages, stages)
    seconds = np.stack([expected.seconds[leg // 2, stage_of[leg]] for leg in range(N_LEGS)])
    forward, backward = expected.forward_message, expected.backward_message
    message = np.stack([(forward if leg < 2 else backward)[stage_of[leg]] for leg in range(4)])
    return seconds, message, expected.bytes[stage_of[:2]]
