"""Orders that hold weight gradients back, shared by the hand-made zero-bubble schedules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.recipe import check_counts, one_stage_a_rank


class Turns(NamedTuple):
    """A rank's order by turn: the `turn`-th forward, input or weight gradient it does.

    Attributes:
        kind: (3 · n,) int8.
        turn: (3 · n,) int64, counted for each kind from 0.
    """

    kind: npt.NDArray[np.int8]
    turn: npt.NDArray[np.int64]


def forward_input_weight(n: int, *, warm_up: int, held_back: int) -> Turns:
    """`warm_up` forwards, then F, I, W in turn, each W `held_back` turns behind its I, until all n of each are done."""
    turn = np.arange(n)
    # the k-th steady turn is F, I, W at 3k, 3k + 1, 3k + 2; forwards of the warm-up lie before turn 0
    place = np.concatenate([3 * (turn - warm_up), 3 * turn + 1, 3 * (turn + held_back) + 2])
    order = np.argsort(place, kind="stable")
    kind = np.repeat(np.array([Kind.F, Kind.I, Kind.W], np.int8), n)
    return Turns(kind[order], np.tile(turn, 3)[order])


def hand_made(name: str, n_ranks: int, n_micro_batches: int, n_chunks: int, *, depth: int) -> Program:
    """One stage a rank; rank r begins with depth·(P−1−r) forwards and holds back depth·r weight gradients.

    So every rank has depth·(P−1) + 1 micro-batches in flight at most.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, or n_chunks is not 1.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank(name, n_chunks, instead="interleaved_zb")
    orders = []
    for rank in range(n_ranks):
        warm_up = depth * (n_ranks - 1 - rank)
        kind, turn = forward_input_weight(n_micro_batches, warm_up=warm_up, held_back=depth * rank)
        orders.append(RankOrder(kind, np.full(len(kind), rank, np.int32), turn.astype(np.int32)))
    return Program.from_columns(name, Placement.looped(n_ranks), n_micro_batches, orders)
