"""The causes of idle time, as the picture shows them."""

from __future__ import annotations

from explorer.analysis import idle_intervals
from explorer.analysis.cause import Cause
from explorer.core import Trace
from explorer.widgets.gaps import Gaps


def causes_of(trace: Trace) -> Gaps:
    """Every idle interval of `trace` with its cause and what to tell of it.

    Raises:
        InputError: if its events are not of its program.
        ProgramError: if its program is incomplete.
    """
    found = idle_intervals(trace)
    names = tuple(cause.name.lower() for cause in Cause)
    return Gaps(found.rank, found.start, found.end, found.cause, names, found.sentence)
