"""What a worker tells its caller while it works."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any

from explorer.execute._torch_ranks import Parcel
from explorer.execute.by_value import to_bytes
from explorer.execute.hooks import Hook, Memory, SlotEnd, Updated

WARM_UP = -1  # the number of the hidden step
_EVERY = 0.03  # seconds between two reports


class Reporter(Hook):
    """Keeps what happens and sends it on, at most every 30 ms and never within an operation."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._rows, self._sent = pipe, list[Any](), 0.0
        self.step = WARM_UP

    def slot_end(self, event: SlotEnd) -> None:
        """Keep it."""
        self._rows.append(event)
        self.flush_if_due()

    def memory(self, event: Memory) -> None:
        """Keep it."""
        self._rows.append(event)

    def updated(self, event: Updated) -> None:
        """Keep it."""
        self._rows.append(event)

    def parcel(self, parcel: Parcel) -> None:
        """Keep it."""
        self._rows.append(parcel)

    def flush_if_due(self) -> None:
        """Send what there is, if the last time is long enough ago."""
        if time.monotonic() - self._sent >= _EVERY:
            self.flush()

    def flush(self) -> None:
        """Send what there is."""
        if self._rows:
            rows, self._rows = self._rows, []
            self.tell("rows", rows)
        self._sent = time.monotonic()

    def tell(self, what: str, value: Any) -> None:
        """Send one thing."""
        self._pipe.send_bytes(to_bytes((what, self.step, value), what="report"))
