"""The button that ends a run."""

from __future__ import annotations

import threading

from explorer.errors import RunStopped
from explorer.execute.events import SlotStart
from explorer.execute.hooks import Hook


class Stop(Hook):
    """Ends a run at its next slot, from any thread: `stop.set()`."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def set(self) -> None:
        """Ask the run to end."""
        self._asked.set()

    @property
    def is_set(self) -> bool:
        """Whether it was asked to end."""
        return self._asked.is_set()

    def slot_start(self, event: SlotStart) -> None:
        """End the run if asked to.

        Raises:
            RunStopped: if `set` was called.
        """
        if self._asked.is_set():
            raise RunStopped(f"the run was stopped before {event.actions[0]} of step {event.step}")

    def pulse(self) -> None:
        """End the run if asked to.

        Raises:
            RunStopped: if `set` was called.
        """
        if self._asked.is_set():
            raise RunStopped("the run was stopped while it warmed up or compared itself with the whole model")
