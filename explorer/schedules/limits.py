"""Refusals that name the nearest numbers that would do."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from explorer.errors import ScheduleError, shown


def nearest(value: int, fits: Callable[[int], bool]) -> tuple[int, ...]:
    """The nearest counts below and above `value` that fit, nearest first; some count above must fit."""
    below = next((n for n in range(value - 1, 0, -1) if fits(n)), None)
    above = next(n for n in itertools.count(max(value, 0) + 1) if fits(n))
    found = (above,) if below is None else (below, above)
    return tuple(sorted(found, key=lambda n: abs(n - value)))


def check_fits(schedule: str, rule: str, came: str, *, argument: str, value: int, fits: Callable[[int], bool]) -> None:
    """Refuse a `value` of `argument` that does not fit.

    Args:
        schedule: as a person writes it.
        rule: what it needs: "n_ranks to be even".
        came: what it got instead.
        argument: which argument would mend it.
        value: of that argument.
        fits: whether a value of it does.

    Raises:
        ScheduleError: with the nearest values that fit.
    """
    if not fits(value):
        legal = nearest(value, fits)
        advice = " or ".join(map(str, legal))
        raise ScheduleError(f"{schedule} needs {rule}; got {came}; try {advice}", argument=argument, legal=legal)


def check_range(schedule: str, argument: str, value: int, *, lowest: int, highest: int | None = None) -> None:
    """Refuse a `value` of `argument` below `lowest` or above `highest`.

    Raises:
        ScheduleError: with the end of the range that is nearest.
    """
    if highest is not None and value > highest:
        rule, end = f"at most {highest}", highest
    elif value < lowest:
        rule, end = f"at least {lowest}", lowest
    else:
        return
    raise ScheduleError(
        f"{schedule} needs {argument} of {rule}; got {shown(value)}; try {end}", argument=argument, legal=(end,)
    )


def check_dialect(schedule: str, dialect: object, known: tuple[str, ...]) -> None:
    """Refuse a dialect that `schedule` is not known to have.

    Raises:
        ScheduleError: with those it has.
    """
    if not isinstance(dialect, str) or dialect not in known:
        raise ScheduleError(
            f"{schedule} has the dialects {', '.join(known)}; got {shown(dialect)}; try {known[0]}",
            argument="dialect",
        )
