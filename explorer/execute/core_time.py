"""The clock that operations are timed with: seconds in which their thread could have worked."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

_RUN_QUEUE = "/proc/thread-self/schedstat"  # ns on a core, ns runnable but waiting for one, times it was put on one


@contextlib.contextmanager
def core_time() -> Iterator[Callable[[], float]]:
    """A clock of this thread, in seconds: time on a core, and time asleep or waiting for a device.

    Left out is what the thread spent ready to run while other programs had all cores: a virtual rank has a core of
    its own, while the browser that draws it may be using this one. Where the system does not tell (it is Linux that
    does), this is `time.perf_counter`.
    """
    try:
        file = os.open(_RUN_QUEUE, os.O_RDONLY)
    except OSError:
        yield time.perf_counter
        return
    try:
        yield _CoreTime(lambda: int(os.pread(file, 96, 0).split()[1]) * 1e-9)
    finally:
        os.close(file)


class _CoreTime:
    """Adds up wall time without waits; never less than the thread's own computing, for waits are told of late.

    Args:
        waited: seconds this thread has waited for a core, so far.
        wall: seconds now.
        computed: seconds this thread has computed, so far.
    """

    def __init__(
        self,
        waited: Callable[[], float],
        wall: Callable[[], float] = time.perf_counter,
        computed: Callable[[], float] = time.thread_time,
    ) -> None:
        self._waited, self._wall, self._computed = waited, wall, computed
        self._last_wall, self._last_computed = wall() - waited(), computed()
        self._now = 0.0

    def __call__(self) -> float:
        wall, computed = self._wall() - self._waited(), self._computed()
        self._now += max(wall - self._last_wall, computed - self._last_computed)
        self._last_wall, self._last_computed = wall, computed
        return self._now
