"""When something that follows a run is made anew: about once a second, and in a tenth of the time at most."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY = 1.0  # seconds between two
_SHARE = 0.1  # of the time, at most


class Pace:
    """Counts the seconds that were worked, and tells when work is due again.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -float("inf")
        self._took = 0.0  # seconds that what is under way has taken

    @property
    def is_due(self) -> bool:
        """Whether the next may begin."""
        return self._clock() >= self._due

    def work(self, piece: Callable[[], bool]) -> None:
        """Do a piece of it, which says whether that was the last."""
        begun = self._clock()
        over = piece()
        now = self._clock()
        self._took += now - begun
        if over:
            self._due, self._took = now + max(_EVERY, self._took / _SHARE), 0.0
