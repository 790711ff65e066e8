"""Orders read off a clock: actions at whole ticks, none two at once on a rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder

Ticks = npt.NDArray[np.int64]


def by_clock(name: str, placement: Placement, begin: Ticks) -> Program:
    """Every rank in the order of a clock on which each F and each B takes one tick, and none waits.

    Micro-batch m is on stage s at tick begin[m] + s, and comes back at begin[m] + 2·n_stages − 1 − s.

    Args:
        name: of the schedule.
        placement: so that no two actions of a rank fall on one tick.
        begin: (n_micro_batches,) int64, the tick at which each enters its first stage.
    """
    stage = np.arange(placement.n_stages, dtype=np.int64)[:, None]
    tick = np.stack([begin + stage, begin + 2 * placement.n_stages - 1 - stage])
    micro_batch = np.arange(len(begin))
    rank = np.broadcast_to(placement.rank_of(stage, micro_batch[None]), tick.shape)
    kind, of_stage, of_micro_batch = (index.reshape(-1) for index in np.indices(tick.shape, dtype=np.int32))
    order = np.lexsort((tick.reshape(-1), rank.reshape(-1)))
    ends = np.cumsum(np.bincount(rank.reshape(-1), minlength=placement.n_ranks))[:-1]
    letters = np.array([Kind.F, Kind.B], np.int8)
    orders = [RankOrder(letters[kind[rows]], of_stage[rows], of_micro_batch[rows]) for rows in np.split(order, ends)]
    return Program.from_columns(name, placement, len(begin), orders)
