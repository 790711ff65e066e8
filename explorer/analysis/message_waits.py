"""What messages waited for: the other end, or another message of their rank."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from explorer.core import Stream, Trace


def behind_messages(trace: Trace, *, streams: Literal["rank", "direction"] = "rank") -> npt.NDArray[np.float64]:
    """(n_events,) seconds of each event's wait in which an earlier message of its rank was still in the way.

    The rest of a message's wait is for its other end. Computation waits behind no message by itself: it waits for a
    receive, and that one may have been behind others.

    Args:
        trace: one whose messages are events of their own, as `simulate(…, messages="ordered")` gives it.
        streams: "rank": all messages of a rank pass one after another. "direction": its sends do, and its receives.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=8, n_chunks=2)
        >>> placed = ex.add_messages(program, receives="front_loaded")
        >>> bool(ex.behind_messages(ex.simulate(placed, messages="ordered")).any())
        True
    """
    events = trace.events
    behind = np.zeros(len(events))
    rows = np.flatnonzero(events.stream != Stream.COMPUTE)
    line = events.stream if streams == "direction" else np.zeros_like(events.stream)
    keys = (events.slot[rows], line[rows], events.rank[rows], events.step[rows])
    rows = rows[np.lexsort(keys)]
    lines = np.stack([events.step[rows], events.rank[rows], line[rows]])
    first = np.ones(len(rows), np.bool_)
    first[1:] = (lines[:, 1:] != lines[:, :-1]).any(axis=0)
    # messages posted together share a slot, and none is in the way of the others
    fresh = first.copy()
    fresh[1:] |= events.slot[rows[1:]] != events.slot[rows[:-1]]
    for begin, end in zip(np.flatnonzero(first), np.append(np.flatnonzero(first)[1:], len(rows)), strict=True):
        part = rows[begin:end]
        group = np.cumsum(fresh[begin:end]) - 1
        over = np.zeros(int(group[-1]) + 2)
        np.maximum.at(over, group + 1, events.end[part])
        before = np.maximum.accumulate(over)[group]
        posted = events.start[part] - events.wait[part]
        behind[part] = np.clip(before - posted, 0.0, events.wait[part])
    return behind
