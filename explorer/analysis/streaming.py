"""Items that pass through an assembly line: how long each takes, and how many come out a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.core import Trace
from explorer.core.metrics import compute_rows
from explorer.core.trace import check_trace

if TYPE_CHECKING:
    import pandas as pd


def items(trace: Trace) -> pd.DataFrame:
    """Each item, a micro-batch of a step: when it went in, when it came out, and what lies between.

    Args:
        trace: any; of a training step an item comes out when its last backward has ended.

    Returns:
        step, micro_batch, start, end and latency, the last three in seconds; in order of step and micro-batch.
    """
    import pandas as pd

    check_trace(trace)
    step, micro_batch, start, end = _spans(trace)
    columns = {"step": step, "micro_batch": micro_batch, "start": start, "end": end, "latency": end - start}
    return pd.DataFrame(columns)


def throughput(trace: Trace) -> float:
    """Items a second once the line is full: of all that came out behind the first, over the time that took.

    Args:
        trace: any; of several steps the median is taken. NaN where fewer than two items came out.
    """
    check_trace(trace)
    step, _, _, end = _spans(trace)
    rates = []
    for one in np.unique(step):
        came_out = np.sort(end[step == one])
        took = came_out[-1] - came_out[0]
        rates.append((len(came_out) - 1) / took if took > 0 else np.nan)
    return float(np.median(rates)) if rates else float("nan")


def _spans(trace: Trace) -> tuple[npt.NDArray[Any], ...]:
    """Step, micro-batch, first start and last end of each item."""
    events = trace.events.take(compute_rows(trace.events))
    events = events.take(events.micro_batch >= 0)
    n = trace.program.n_micro_batches
    key = events.step.astype(np.int64) * n + events.micro_batch
    order = np.argsort(key, kind="stable")
    key, start, end = key[order], events.start[order], events.end[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    if not len(first):
        empty = np.zeros(0)
        return first, first, empty, empty
    return key[first] // n, key[first] % n, np.minimum.reduceat(start, first), np.maximum.reduceat(end, first)
