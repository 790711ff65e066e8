"""Why ranks of a run wait, while it goes on: the page is made anew about once a second, a piece at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from explorer.core import Trace
from explorer.errors import ExplorerError
from explorer.widgets.markup import Markup, element
from explorer.widgets.pace import Pace
from explorer.widgets.why import why_pieces

MOST_LIVE = 10_000  # actions of a step whose causes are found while others are being timed
_TOO_MANY = "The run goes on. A step of {:,} actions is explained once it is over: before, that would hold the run up."


class LiveWhy:
    """Makes the page between two operations of a run, after a frame has been drawn.

    That time counts for nothing in the kernel, while a second thread would hold the interpreter's lock against the
    operations that are being timed; and no frame is late by more than one piece.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = Pace(clock)
        self._pieces: Iterator[Markup] | None = None
        self._page = Markup()

    def work(self, trace: Trace) -> Markup:
        """Do the next piece of the page, or begin one of `trace` if it is time; "" until it is complete."""
        self._page = Markup()
        if self._pieces is None and self._pace.is_due:
            self._pieces = _pieces(trace)
        if self._pieces is not None:
            self._pace.work(self._piece)
        return self._page

    def _piece(self) -> bool:
        assert self._pieces is not None
        try:
            self._page = next(self._pieces)
        except ExplorerError as error:
            self._page = element("p", str(error), kind="explanation")
        if self._page:
            self._pieces = None
        return bool(self._page)


def _pieces(trace: Trace) -> Iterator[Markup]:
    n_actions = trace.program.n_actions
    if n_actions > MOST_LIVE:
        return iter([element("p", _TOO_MANY.format(n_actions), kind="note")])
    return why_pieces(trace)
