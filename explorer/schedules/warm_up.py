"""1F1B with any number of forwards first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from explorer.core import Placement, Program
from explorer.errors import ScheduleError, shown
from explorer.schedules.recipe import check_counts, one_stage_a_rank, one_stage_order, warm_up_then_alternate

WarmUp = int | Sequence[int]


def one_stage_1f1b(name: str, n_ranks: int, n_micro_batches: int, n_chunks: int, warm_up: WarmUp) -> Program:
    """A forward and a backward in turn on every rank, after its warm-up.

    Raises:
        ScheduleError: if a count is not a whole number of at least 1, n_chunks is not 1, or this warm-up would hang.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank(name, n_chunks, instead="interleaved_1f1b")
    orders = [
        one_stage_order(rank, warm_up_then_alternate(n_micro_batches, min(first, n_micro_batches)))
        for rank, first in enumerate(_forwards_first(warm_up, n_ranks))
    ]
    return Program.from_columns(name, Placement.looped(n_ranks), n_micro_batches, orders)


def _forwards_first(warm_up: WarmUp, n_ranks: int) -> list[int]:
    """Forwards each rank begins with; a number is how many more than the rank behind it."""
    if isinstance(warm_up, (int, np.integer)) and _is_count(warm_up):
        return [int(warm_up) * (n_ranks - 1 - rank) for rank in range(n_ranks)]
    if isinstance(warm_up, str) or not isinstance(warm_up, (Sequence, np.ndarray)):
        raise _refusal(f"a whole number of at least 0, or one a rank; got {shown(warm_up)}", n_ranks)
    first = list(warm_up)
    if len(first) != n_ranks or not all(map(_is_count, first)):
        raise _refusal(f"one whole number of at least 0 for each of {n_ranks} ranks; got {shown(first)}", n_ranks)
    if any(before < behind for before, behind in itertools.pairwise(first)):
        # the rank behind would want a forward that only comes after a backward it has not sent yet
        raise _refusal(f"never larger on the rank behind, or the two wait for each other; got {shown(first)}", n_ranks)
    return [int(count) for count in first]


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def _refusal(rule_and_value: str, n_ranks: int) -> ScheduleError:
    staircase = list(range(n_ranks - 1, -1, -1)) if n_ranks <= 8 else 1
    return ScheduleError(f"warm_up is {rule_and_value}; try {staircase}", argument="warm_up", legal=(1,))
