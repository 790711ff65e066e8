"""Bytes and micro-batches that each rank holds over time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.analysis.levels import Levels
from explorer.core import Category, Trace
from explorer.core.metrics import held
from explorer.core.trace import check_trace
from explorer.errors import InputError


def memory_over_time(trace: Trace, *, category: Category | None = None) -> Levels:
    """The bytes each rank holds over time; nothing where the trace knows no memory.

    Every step counts from 0: its rows say what was there when it began.

    Args:
        trace: any.
        category: only memory held for this; None for all of it.

    Raises:
        InputError: if it is no Trace, or no Category.
    """
    changes = check_trace(trace).memory
    if category is not None:
        if not isinstance(category, Category):
            names = ", ".join(one.name for one in Category)
            raise InputError(
                f"category is an explorer.Category: {names}; got {str(category)[:40]!r}; try Category.ACTIVATIONS",
                argument="category",
            )
        changes = changes.take(changes.category == category)
    return Levels.of_changes(changes.rank, changes.step, changes.time, changes.delta, n_ranks=trace.n_ranks)


def in_flight_over_time(trace: Trace) -> Levels:
    """How many (stage, micro-batch) pairs each rank holds over time.

    Held from the start of F until the end of B or, after I, of W.

    Raises:
        InputError: if it is no Trace.
    """
    events = check_trace(trace).events
    taken, freed = held(events)
    rows = np.concatenate([taken, freed])
    time = np.concatenate([events.start[taken], events.end[freed]])
    change = np.repeat(np.array([1, -1]), [len(taken), len(freed)])
    return Levels.of_changes(events.rank[rows], events.step[rows], time, change, n_ranks=trace.n_ranks)


def peak_bytes(trace: Trace, *, category: Category | None = None) -> npt.NDArray[np.int64]:
    """(n_ranks,) the most bytes each rank holds at once in any step: what must fit.

    Args:
        trace: any; 0 everywhere where it knows no memory.
        category: only memory held for this; None for all of it.

    Raises:
        InputError: if it is no Trace, or no Category.
    """
    return memory_over_time(trace, category=category).peaks()
