"""The byte limit of schedules that search within one."""

from __future__ import annotations

import math
import sys

import numpy as np

from explorer.core.units import bytes_in_words, bytes_to_type
from explorer.errors import ScheduleError, shown


def check_limit(memory_limit: float | None, default: float) -> float:
    """The limit in bytes, or `default` where none is given.

    Raises:
        ScheduleError: if it is no number above 0.
    """
    if memory_limit is None:
        return default
    number = isinstance(memory_limit, (int, float, np.integer, np.floating)) and not isinstance(memory_limit, bool)
    if not number or not (0 < memory_limit <= sys.float_info.max or memory_limit == math.inf):
        raise ScheduleError(
            f"memory_limit is a number of bytes above 0; got {shown(memory_limit)}; try {bytes_to_type(default)}",
            argument="memory_limit",
            legal=(int(default),),
        )
    return float(memory_limit)


def refuse_limit(name: str, limit: float, enough: float) -> ScheduleError:
    """The error that says no order was found within `limit`, and how much is enough."""
    return ScheduleError(
        f"{name} finds no order within a memory_limit of {bytes_in_words(limit)} a rank; try {bytes_to_type(enough)}",
        argument="memory_limit",
        legal=(int(np.ceil(enough)),),
    )
