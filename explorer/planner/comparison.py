"""Several schedules side by side: same ranks, same micro-batches, same work, same limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.core import Program, RankShare, graph_of
from explorer.errors import InputError
from explorer.planner.asked import check_count, check_limit, check_schedules, check_share
from explorer.planner.points import Outcome, Point, measured, outcome
from explorer.planner.sweep import to_frame
from explorer.schedules import REGISTRY

if TYPE_CHECKING:
    import pandas as pd


def comparison(
    schedules: Sequence[str | Program],
    *,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int | None = None,
    costs: RankShare | None = None,
    memory_limit: float | None = None,
) -> pd.DataFrame:
    """Schedules side by side: what each takes, wastes, holds, sends and needs, at equal work.

    Work is equal because `costs` are of a rank's share of the model, which its stages divide: with two stages a rank
    each takes half.

    Args:
        schedules: names, as `explorer.schedules()` lists them, and programs of your own.
        n_ranks: pipeline ranks.
        n_micro_batches: micro-batches in a step.
        n_chunks: stages a rank, for those that allow it; None, and for the others: the fewest that each has.
        costs: as `Costs.per_rank_share(…)` gives them; F = 1 and B = 2 if not given.
        memory_limit: bytes of a rank, for everything; what needs more is not legal, and schedules that search within a
            limit are given this one. None: any number.

    Returns:
        A row for each schedule, with the columns of `sweep`, and `over_best`: how much longer it takes than the
        fastest legal one, as a share of that; NaN for what only runs forward, beside what trains. Of the two measures
        of the bubble, bubble_ratio is idle time over ranks × makespan, what of the machine is wasted; bubble_overhead
        is idle time over busy time, what comes on top of the work, and what papers often print.

    Raises:
        ScheduleError: if there is no such schedule.
        InputError: if an argument is no such thing, or a program has other ranks or micro-batches.

    Example:
        >>> import explorer as ex
        >>> found = ex.comparison(["gpipe", "1f1b", "zb_h1"], n_ranks=4, n_micro_batches=8)
        >>> found[["schedule", "makespan", "peak_in_flight", "splits_backward"]]
          schedule  makespan  peak_in_flight  splits_backward
        0    gpipe      33.0               8            False
        1     1f1b      33.0               4            False
        2    zb_h1      27.0               4             True
    """
    listed: Sequence[Any] = check_schedules(schedules, besides=(Program,))
    ranks, micro_batches = check_count("n_ranks", n_ranks), check_count("n_micro_batches", n_micro_batches)
    share, limit = check_share(costs), check_limit(memory_limit)
    point = Point("", ranks, micro_batches, n_chunks)
    found = to_frame(_outcome(one, point, share, limit) for one in listed)
    trains = [one.has_backward if isinstance(one, Program) else REGISTRY[one].trains for one in listed]
    alike = np.array(trains) if any(trains) else np.ones(len(trains), np.bool_)  # what only runs forward does less
    time = found["makespan"].where(alike)
    found["over_best"] = time / time[found["legal"]].min() - 1
    return found


def _outcome(one: str | Program, point: Point, costs: RankShare, limit: float | None) -> Outcome:
    if isinstance(one, str):
        chunks = point.n_chunks if _has_chunks(one) else None
        return outcome(point._replace(schedule=one, n_chunks=chunks), costs, memory_limit=limit)
    if (one.n_ranks, one.n_micro_batches) != (point.n_ranks, point.n_micro_batches):
        raise InputError(
            f"programs are compared at {point.n_ranks} ranks and {point.n_micro_batches} micro-batches; "
            f"{one.name} has {one.n_ranks} and {one.n_micro_batches}; leave it out or ask for these",
            argument="schedules",
        )
    return measured(graph_of(one), costs, memory_limit=limit, name=one.name)


def _has_chunks(name: str) -> bool:
    return REGISTRY[name].any_chunks
