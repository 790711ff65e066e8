"""Many schedules at many sizes: what each comes to, or why it is not there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from explorer.core import RankShare
from explorer.planner.asked import check_counts, check_limit, check_schedules, check_share
from explorer.planner.points import Outcome, Point, outcome

if TYPE_CHECKING:
    import pandas as pd

Counts = int | Iterable[int]


def sweep(
    schedules: str | Sequence[str],
    *,
    n_ranks: Counts,
    n_micro_batches: Counts,
    n_chunks: int | Iterable[int | None] | None = None,
    costs: RankShare | None = None,
    memory_limit: float | None = None,
) -> pd.DataFrame:
    """Every schedule at every size, simulated at equal work.

    Args:
        schedules: names, as `explorer.schedules()` lists them.
        n_ranks: pipeline ranks: a number or several.
        n_micro_batches: micro-batches in a step: a number or several.
        n_chunks: stages a rank: a number or several; None for the fewest that each schedule has.
        costs: of a rank's share, as `Costs.per_rank_share(…)` gives them, which its stages divide; F = 1 and B = 2 if
            not given.
        memory_limit: bytes of a rank, for everything; what needs more is not legal. None: any number.

    Returns:
        A row for each combination, with the columns that `explorer.planner.Outcome` explains: schedule, n_ranks,
        n_micro_batches, n_chunks, makespan, seconds_per_micro_batch, bubble_ratio, bubble_overhead, peak_bytes,
        peak_in_flight, messages, bytes_sent, weight_copies, splits_backward, legal and, where that is false, reason.

    Raises:
        ScheduleError: if there is no such schedule.
        InputError: if an argument is no such thing.

    Example:
        >>> import explorer as ex
        >>> found = ex.sweep(["1f1b", "dualpipe"], n_ranks=4, n_micro_batches=[4, 8])
        >>> found[["schedule", "n_micro_batches", "makespan", "legal"]]
           schedule  n_micro_batches  makespan  legal
        0      1f1b                4      21.0   True
        1      1f1b                8      33.0   True
        2  dualpipe                4       NaN  False
        3  dualpipe                8      26.0   True
    """
    found = sweep_outcomes(
        schedules,
        n_ranks=n_ranks,
        n_micro_batches=n_micro_batches,
        n_chunks=n_chunks,
        costs=costs,
        memory_limit=memory_limit,
    )
    return to_frame(found)


def sweep_outcomes(
    schedules: str | Sequence[str],
    *,
    n_ranks: Counts,
    n_micro_batches: Counts,
    n_chunks: int | Iterable[int | None] | None = None,
    costs: RankShare | None = None,
    memory_limit: float | None = None,
) -> Iterator[Outcome]:
    """As `sweep`, one outcome after another, each worked out when it is asked for: stop asking, and it stops.

    What is asked for is checked at once.

    Raises:
        ScheduleError: if there is no such schedule.
        InputError: if an argument is no such thing.
    """
    grid = itertools.product(
        check_schedules(schedules),
        check_counts("n_ranks", n_ranks),
        check_counts("n_micro_batches", n_micro_batches),
        check_counts("n_chunks", n_chunks, none=True),
    )
    share, limit = check_share(costs), check_limit(memory_limit)
    return (outcome(Point(*point), share, memory_limit=limit) for point in grid)  # type: ignore[arg-type]


def to_frame(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """A row for each outcome."""
    import pandas as pd

    return pd.DataFrame([asdict(one) for one in outcomes], columns=[field.name for field in fields(Outcome)])
