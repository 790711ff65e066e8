"""What comparisons and sweeps are asked for, read and refused by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from explorer.core import Costs, RankShare
from explorer.errors import InputError
from explorer.schedules import REGISTRY, schedule


def check_share(costs: object) -> RankShare:
    """The costs of a rank's share; those of F = 1 and B = 2 if none are given.

    Raises:
        InputError: if they are something else, like costs per stage: these would give more chunks more work.
    """
    if costs is None:
        return Costs.per_rank_share()
    if isinstance(costs, RankShare):
        return costs
    raise InputError(
        "schedules are compared at equal work, so costs are of a rank's share, which its stages divide; got "
        f"{type(costs).__name__}; try Costs.per_rank_share(forward=1.0, backward=2.0)",
        argument="costs",
    )


def check_schedules(names: object, *, besides: tuple[type, ...] = ()) -> tuple[Any, ...]:
    """The names of schedules, if all are in the registry.

    Args:
        names: one or several.
        besides: what may stand among them, and is let through.

    Raises:
        ScheduleError: naming the nearest one there is.
        InputError: if they are no names.
    """
    given = [names] if isinstance(names, (str, *besides)) else names
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(
            f"schedules are names in a list; got {str(names)[:40]!r}; try ['gpipe', '1f1b']", argument="schedules"
        )
    for name in given:
        if not isinstance(name, besides) and (not isinstance(name, str) or name not in REGISTRY):
            schedule(name, n_ranks=1, n_micro_batches=1)  # which says what there is
    return tuple(given)


def check_limit(memory_limit: object) -> float | None:
    """The limit in bytes, or None.

    Raises:
        InputError: if it is no number above 0.
    """
    number = isinstance(memory_limit, (int, float, np.integer, np.floating)) and not isinstance(memory_limit, bool)
    if memory_limit is None or (number and memory_limit > 0):  # type: ignore[operator]
        return None if memory_limit is None else float(memory_limit)  # type: ignore[arg-type]
    raise InputError(
        f"memory_limit is bytes of a rank, above 0; got {str(memory_limit)[:40]}; try 80e9", argument="memory_limit"
    )


def check_count(argument: str, count: object) -> int:
    """One count. Whether a schedule exists for it is the schedule's to say.

    Args:
        argument: its public name.
        count: to read.

    Raises:
        InputError: if it is no whole number.
    """
    if isinstance(count, (int, np.integer)) and not isinstance(count, bool):
        return int(count)
    raise InputError(f"{argument} is a whole number; got {str(count)[:40]!r}; try 4", argument=argument)


def check_counts(argument: str, counts: object, *, none: bool = False) -> tuple[int | None, ...]:
    """One count or several, as several.

    Whether a schedule exists for a count is the schedule's to say.

    Args:
        argument: its public name.
        counts: to read.
        none: whether None, "as the schedule has it", is a count.

    Raises:
        InputError: if one is no whole number, or there are none.
    """
    given: list[Any] = list(counts) if isinstance(counts, Iterable) and not isinstance(counts, str) else [counts]
    whole = [isinstance(count, (int, np.integer)) and not isinstance(count, bool) for count in given]
    if not given or not all(fine or (none and count is None) for fine, count in zip(whole, given, strict=True)):
        raise InputError(
            f"{argument} is a whole number or several; got {str(counts)[:40]!r}; try [4, 8]", argument=argument
        )
    return tuple(None if count is None else int(count) for count in given)
