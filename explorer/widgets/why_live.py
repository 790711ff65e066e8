"""Why ranks of a run wait, while it goes on: the page is made anew about once a second, a piece at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from explorer.core import Trace
from explorer.errors import ExplorerError
from explorer.widgets.markup import Markup, element
from explorer.widgets.why import why_pieces

MOST_LIVE = 10_000  # actions of a step whose causes are found while others are being timed
_EVERY = 1.0  # seconds between two pages
_SHARE = 0.1  # of the time, at most
_TOO_MANY = "The run goes on. A step of {:,} actions is explained once it is over: before, that would hold the run up."


class LiveWhy:
    """Makes the page between two operations of a run, after a frame has been drawn.

    That time counts for nothing in the kernel, while a second thread would hold the interpreter's lock against the
    operations that are being timed; and no frame is late by more than one piece.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -float("inf")
        self._took = 0.0  # seconds that the page under way has taken
        self._pieces: Iterator[Markup] | None = None

    def work(self, trace: Trace) -> Markup:
        """Do the next piece of the page, or begin one of `trace` if it is time; "" until it is complete."""
        begun = self._clock()
        if self._pieces is None:
            if begun < self._due:
                return Markup()
            self._pieces, self._took = _pieces(trace), 0.0
        try:
            page = next(self._pieces)
        except ExplorerError as error:
            page = element("p", str(error), kind="explanation")
        now = self._clock()
        self._took += now - begun
        if page:
            self._pieces, self._due = None, now + max(_EVERY, self._took / _SHARE)
        return page


def _pieces(trace: Trace) -> Iterator[Markup]:
    n_actions = trace.program.n_actions
    if n_actions > MOST_LIVE:
        return iter([element("p", _TOO_MANY.format(n_actions), kind="note")])
    return why_pieces(trace)
