"""One step of a trace, put where it can be compared: alone, and begun at 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.core import Trace
from explorer.core.metrics import compute_rows, rank_times
from explorer.core.trace import check_trace
from explorer.errors import InputError


def median_step(trace: Trace) -> int:
    """The number of the step that stands for the trace: of median makespan among all but the first.

    Of an even number of steps it is the one just below the middle, since a median between two is no step.

    Args:
        trace: any with at least one step.

    Raises:
        InputError: if it is no Trace, or has no step.
    """
    steps = check_trace(trace).steps
    if not steps:
        raise InputError("a comparison needs traces with at least one step; got an empty one", argument="traces")
    counted = steps[1:] or steps
    events = trace.events
    makespans = [rank_times(events.take(events.step == step), trace.n_ranks).makespan for step in counted]
    return counted[int(np.argsort(makespans, kind="stable")[(len(counted) - 1) // 2])]


def aligned_step(trace: Trace, *, step: int | None = None) -> Trace:
    """One step of `trace`, moved so that its first action starts at 0.

    Args:
        trace: any.
        step: its number; None for `median_step`.

    Raises:
        InputError: if it is no Trace, or has no such step.
    """
    number = median_step(trace) if step is None else step
    one = check_trace(trace).step(number)
    rows = compute_rows(one.events)
    begin = float(one.events.start[rows if len(rows) else slice(None)].min())
    events = replace(one.events, start=one.events.start - begin, end=one.events.end - begin)
    # what was there when the step began may have been written down before its first action
    memory = replace(one.memory, time=np.maximum(one.memory.time - begin, 0.0))
    return replace(one, events=events, memory=memory)
