"""What is selected in the picture, as rows of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import Action, Kind, Trace
from explorer.widgets.columns import MS, packed_order


def action_of(trace: Trace, row: int) -> Action:
    """What ran in the event at `row`."""
    events = trace.events
    numbers = (int(column[row]) for column in (events.stage, events.micro_batch, events.segment))
    return Action(Kind(int(events.kind[row])), *numbers)


def chosen_rows(trace: Trace, selected: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """Places in the trace's events of those that are selected, in order of their starts.

    Args:
        trace: that the selection is of.
        selected: as the browser tells it: `row`, a place in the packed columns; or `from` and `to` in ms and `ranks`,
            the first and the last, for all that runs there at any time between.
    """
    events = trace.events
    if "row" in selected:
        row = int(selected["row"])
        return packed_order(events)[row : row + 1]
    if "ranks" not in selected:
        return np.zeros(0, np.int64)
    first, last = selected["ranks"]
    there = (events.rank >= first) & (events.rank <= last)
    running = (events.end * MS > selected["from"]) & (events.start * MS < selected["to"])
    rows = np.flatnonzero(there & running)
    return np.asarray(rows[np.argsort(events.start[rows], kind="stable")])
