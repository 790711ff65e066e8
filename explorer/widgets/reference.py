"""What the numbers of a picture are compared with: what was there before, or what the user pinned."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from explorer.core import Trace

_REST = 1.5  # seconds after which moving the same slider again is another change


class Against(NamedTuple):
    """A trace that others are compared with.

    Attributes:
        trace: whose numbers stand before the arrow.
        word: what it is: "before" or "pinned".
    """

    trace: Trace
    word: str


class Reference:
    """The picture before the change that goes on, which a slider makes in many small steps; or the one pinned.

    Args:
        clock: in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: Trace | None = None
        self._before: Trace | None = None
        self._pinned: Trace | None = None
        self._changing = ""
        self._changed_at = -_REST

    @property
    def shown(self) -> Trace | None:
        """The prediction in the picture."""
        return self._shown

    @property
    def pinned(self) -> Trace | None:
        """What the user keeps to compare with."""
        return self._pinned

    def change(self, what: str) -> None:
        """What is shown is about to change because of `what`; "" for a change that stands alone."""
        now = self._clock()
        if not what or what != self._changing or now - self._changed_at > _REST:
            self._before = self._shown
        self._changing, self._changed_at = what, now

    def show(self, trace: Trace) -> Against | None:
        """`trace` is shown now; what to compare it with, None if nothing."""
        self._shown = trace
        return self.against()

    def against(self) -> Against | None:
        """What the picture is compared with."""
        if self._pinned is not None:
            return Against(self._pinned, "pinned")
        return None if self._before is None else Against(self._before, "before")

    def pin(self, pinned: bool) -> None:
        """Keep what is shown to compare with, or no longer."""
        self._pinned = self._shown if pinned else None
