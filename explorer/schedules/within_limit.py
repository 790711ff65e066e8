"""What ZB-1P and ZB-2P share: from numbers, costs and a limit to the program the search finds."""

from __future__ import annotations

import numpy as np

from explorer.core import Costs, Kind, Placement, Program, RankShare
from explorer.errors import ScheduleError, shown
from explorer.schedules.expected import Expected, Floats, even, expect
from explorer.schedules.line_search import search
from explorer.schedules.memory_limit import check_limit, refuse_limit
from explorer.schedules.recipe import check_counts, one_stage_a_rank, one_stage_order

_KINDS = np.array([Kind.F, Kind.I, Kind.W], np.int8)


def searched(
    name: str,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int,
    *,
    costs: Costs | RankShare | None,
    memory_limit: float | None,
    weight_share: float | None,
    times_1f1b: int,
) -> Program:
    """The program the search finds within `memory_limit`, by default `times_1f1b` times what 1F1B's first rank holds.

    Raises:
        ScheduleError: if a count or an option is not among its legal ones, or nothing fits.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    one_stage_a_rank(name, n_chunks, instead="zb_v")
    placement = Placement.looped(n_ranks)
    expected = expect(costs, placement)
    enough = times_1f1b * n_ranks * float(expected.bytes.max())
    limit = check_limit(memory_limit, enough)
    share = _check_share(weight_share)
    found = search(_table(expected, share), limit, n_micro_batches)
    if found is None:  # greedy by uneven costs it may run into a dead end
        found = search(_table(even(expected), share), limit, n_micro_batches)
    if found is None:
        raise refuse_limit(name, limit, enough)
    orders = [one_stage_order(rank, _KINDS[turns]) for rank, turns in enumerate(found)]
    return Program.from_columns(name, placement, n_micro_batches, orders)


def _table(expected: Expected, share: float) -> Floats:
    """(8, n_ranks): seconds of F, I, W; seconds of messages; bytes that F, I, W add."""
    seconds, forward, backward, held = expected
    return np.concatenate([seconds, [forward, backward, held, -(1 - share) * held, -share * held]])


def _check_share(share: float | None) -> float:
    number = isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool)
    if share is None or not number or not 0 <= share <= 1:
        raise ScheduleError(
            f"weight_share is a number from 0 to 1; got {shown(share)}; try 1", argument="weight_share", legal=(1,)
        )
    return float(share)
