"""Who holds the memory when a rank holds the most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.levels import Levels
from explorer.analysis.memory import memory_over_time
from explorer.core import Category, MemoryChanges, Trace
from explorer.core.trace import check_trace
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_ROUNDING = 1e-12  # of a time


def peak_holders(trace: Trace, rank: int | None = None, *, time: float | None = None) -> pd.DataFrame:
    """What a rank holds at its peak: how many bytes, for which micro-batch on which stage, since when.

    Args:
        trace: one that knows memory.
        rank: the pipeline rank; None for the one with the highest peak.
        time: seconds of another moment, as read from the chart; None for the peak.

    Returns:
        A row for each holder, the largest first: rank, time of that moment in seconds, category, stage and micro_batch
        (−1 = does not apply), bytes, and since, the seconds at which it took the first of them. No row where the trace
        knows no memory of that rank.

    Raises:
        InputError: if it is no Trace, or there is no such rank.

    Example:
        >>> import explorer as ex
        >>> trace = ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8), ex.Costs(activation_bytes=100))
        >>> ex.peak_holders(trace, rank=2)[["category", "stage", "micro_batch", "bytes", "since"]]
              category  stage  micro_batch  bytes  since
        0  activations      2            0    100    2.0
        1  activations      2            1    100    3.0
    """
    import pandas as pd

    trace = check_trace(trace)
    rank = fullest_rank(trace) if rank is None else check_rank(trace, rank)
    moment = _peak_time(trace, rank) if time is None else float(time)
    held = _held(trace.memory.take(trace.memory.rank == rank), moment)
    columns: dict[str, Any] = {name: held[name] for name in ("stage", "micro_batch", "bytes", "since")}
    names = [category.name.lower() for category in Category]
    category = pd.Categorical.from_codes(held["category"], categories=pd.Index(names)).remove_unused_categories()
    frame = pd.DataFrame({"rank": rank, "time": moment, "category": category, **columns})
    return frame.sort_values(["bytes", "since"], ascending=[False, True], kind="stable", ignore_index=True)


def peak_parts(trace: Trace) -> npt.NDArray[np.int64]:
    """(n_ranks, n_categories) bytes that each rank holds for each Category when it holds the most in all.

    Raises:
        InputError: if it is no Trace.
    """
    trace = check_trace(trace)
    held = memory_over_time(trace)
    moments = [_first_peak(held, rank) for rank in range(trace.n_ranks)]
    return np.stack([_at_moments(memory_over_time(trace, category=one), moments) for one in Category], axis=1)


def _at_moments(levels: Levels, moments: list[float]) -> npt.NDArray[np.int64]:
    """(n_ranks,) each rank's level at a moment of its own."""
    found = np.zeros(len(moments), np.int64)
    for rank, moment in enumerate(moments):
        time, level = levels.of(rank)
        row = int(np.searchsorted(time, moment + _ROUNDING * abs(moment), side="right")) - 1
        found[rank] = level[row] if row >= 0 else 0
    return found


def fullest_rank(trace: Trace) -> int:
    """The rank that holds the most bytes at once; the first of several."""
    return int(np.argmax(memory_over_time(trace).peaks()))


def check_rank(trace: Trace, rank: object) -> int:
    """`rank`, if the trace has it.

    Raises:
        InputError: if it has not.
    """
    whole = isinstance(rank, (int, np.integer)) and not isinstance(rank, bool)
    if not whole or not 0 <= rank < trace.n_ranks:  # type: ignore[operator]
        raise InputError(
            f"rank is a whole number from 0 to {trace.n_ranks - 1}; got {str(rank)[:40]}; try 0",
            argument="rank",
            legal=(0,),
        )
    return int(rank)  # type: ignore[call-overload, no-any-return]


def _peak_time(trace: Trace, rank: int) -> float:
    """When the rank first holds the most, in seconds."""
    return _first_peak(memory_over_time(trace), rank)


def _first_peak(levels: Levels, rank: int) -> float:
    time, level = levels.of(rank)
    return float(time[np.argmax(level)]) if len(time) else 0.0


def _held(changes: MemoryChanges, moment: float) -> dict[str, npt.NDArray[Any]]:
    """What adds up to more than nothing at a moment, of the step it lies in."""
    begun = changes.time <= moment + _ROUNDING * abs(moment)
    changes = changes.take(begun & (changes.step == changes.step[begun].max(initial=0)))
    keys = np.stack([changes.category, changes.stage, changes.micro_batch])
    unique, first, holder = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    total = np.bincount(holder.reshape(-1), changes.delta, unique.shape[1]).astype(np.int64)
    since = np.full(len(first), np.inf)
    np.minimum.at(since, holder.reshape(-1), changes.time)
    rows = total > 0
    category, stage, micro_batch = (column[rows] for column in unique)
    return {
        "category": category,
        "stage": stage,
        "micro_batch": micro_batch,
        "bytes": total[rows],
        "since": since[rows],
    }
