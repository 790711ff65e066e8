"""What a worker tells its caller while it works."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from explorer.execute._torch_ranks import Parcel
from explorer.execute.device_time import is_settled, settled
from explorer.execute.events import Memory, SlotEnd, Updated
from explorer.execute.faults import Injected
from explorer.execute.hooks import Hook
from explorer.execute.reports import to_report

WARM_UP = -1  # the number of the hidden step
_EVERY = 0.06  # seconds between two reports
LATEST = 0.25  # seconds after which a report is sent within an operation, too: this one takes long, or for ever


class Reporter(Hook):
    """Keeps what happens and sends it on, at most every 60 ms, and only for a long operation within one.

    Attributes:
        step: that runs.
        on_device: whether times may be moments of a device, which have their numbers later.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._rows, self._sent = pipe, deque[Any](), 0.0
        self._lock = threading.RLock()
        self._waits = False
        self.on_device = False
        self.step, self._begun, self._spent = WARM_UP, 0.0, 0.0

    @contextlib.contextmanager
    def tended(self) -> Iterator[None]:
        """Within it, what there is to tell is told also while this rank waits for another, or does not go on."""
        over = threading.Event()
        thread = threading.Thread(target=self._tend, args=(over,), name="explorer-reports", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def begin(self, step: int) -> None:
        """A step begins now."""
        self.step, self._begun, self._spent = step, time.perf_counter(), 0.0
        self.tell("begin", self._begun)

    def end(self, loss: float) -> None:
        """The step is over; told with its loss is the share of it that was spent here."""
        with self._spending(), self._lock:
            self._send(len(self._rows))
        self.tell("end", (loss, self._spent / (time.perf_counter() - self._begun)))

    def between_steps(self) -> None:
        """A step is over and told, the next one begins when this returns: nothing is measured now."""

    def slot_end(self, event: SlotEnd) -> None:
        """Keep it."""
        self._keep(event)
        if time.monotonic() - self._sent >= _EVERY:
            self.flush()

    def injected(self, event: Injected) -> None:
        """Keep it."""
        self._keep(event)

    def memory(self, event: Memory) -> None:
        """Keep it."""
        self._keep(event)

    def updated(self, event: Updated) -> None:
        """Keep it."""
        self._keep(event)

    def parcel(self, parcel: Parcel) -> None:
        """Keep it."""
        self._keep(parcel)

    def waits(self, does: bool) -> None:
        """Whether this rank begins to wait for another, or goes on."""
        self._waits = does

    def flush(self) -> None:
        """Send what is known by now."""
        with self._spending(), self._lock:
            n_known = len(self._rows)
            if self.on_device:
                n_known = next((n for n, row in enumerate(self._rows) if not is_settled(row)), n_known)
            self._send(n_known)
            self._sent = time.monotonic()

    def tell(self, what: str, value: Any) -> None:
        """Send one thing; to a caller that has gone, nothing: this process ends with it."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._pipe.send_bytes(to_report(what, self.step, value))

    def _keep(self, row: Any) -> None:
        self._rows.append(row)

    @contextlib.contextmanager
    def _spending(self) -> Iterator[None]:
        """Count what this takes of a core.

        Not the time that passes: a report wakes its reader, and where cores are few that one, or another rank, then
        runs in this one's place.
        """
        begun = time.thread_time()
        try:
            yield
        finally:
            self._spent += time.thread_time() - begun

    def _send(self, n_rows: int) -> None:
        rows = [self._rows.popleft() for _ in range(n_rows)]
        if self.on_device:
            rows = [settled(row) for row in rows]
        if rows:
            self.tell("rows", rows)

    def _tend(self, over: threading.Event) -> None:
        while not over.wait(_EVERY):
            late = time.monotonic() - self._sent
            if self._rows and late >= (_EVERY if self._waits else LATEST):
                self.flush()
