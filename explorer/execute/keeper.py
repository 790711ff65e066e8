"""Keeps, for this process, one nursery and the workers that no run has at the moment."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from explorer.execute.nursery import Nursery
from explorer.execute.workers import Workers

_IDLE = 300.0  # seconds after which workers that no run wanted are ended; they hold some 100 MB each


class Lent(NamedTuple):
    """Workers for a run, and how they came to be.

    Attributes:
        workers: at least as many as were asked for.
        n_forked: how many of them are new.
        waited: seconds until torch was imported where they are forked from; 0.0 if it was already.
    """

    workers: Workers
    n_forked: int
    waited: float


def prepare(n_ranks: int = 0) -> None:
    """Have what workers are forked from, and so many of them, ready; a run then begins at once.

    It takes seconds the first time, nearly all of them for importing torch: call it from a thread of its own.

    Raises:
        RunError: if they cannot be made.
    """
    keeper().prepare(n_ranks)


@contextlib.contextmanager
def lent(n_ranks: int) -> Iterator[Lent]:
    """At least so many workers, kept for the next run if the block ends well, else ended.

    Raises:
        RunError: if they cannot be made.
    """
    loan = keeper().lend(n_ranks)
    try:
        yield loan
    except BaseException:
        loan.workers.end()
        raise
    keeper().take_back(loan.workers)


class Keeper:
    """Of one process; one that was forked from it makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nursery: Nursery | None = None
        self._idle: Workers | None = None
        self._timer: threading.Timer | None = None
        self.owner = os.getpid()
        atexit.register(self.close)

    def start(self) -> Nursery:
        """Have a nursery, be it ready or not."""
        with self._lock:
            return self._started()

    def prepare(self, n_ranks: int) -> None:
        """Have a nursery that is ready, and so many idle workers unless a run has them."""
        with self._lock:
            self._started().wait()
            if n_ranks:
                self._keep(self._grown(n_ranks)[0])

    def lend(self, n_ranks: int) -> Lent:
        """The idle workers, and more if need be; new ones if they are not well."""
        begin = time.monotonic()
        was_ready = self._nursery is not None and self._nursery.is_ready and self._nursery.alive
        with self._lock:
            self._started().wait()
            waited = 0.0 if was_ready else time.monotonic() - begin
            return Lent(*self._grown(n_ranks), waited)

    def take_back(self, workers: Workers) -> None:
        """Keep these for the next run, for a while."""
        with self._lock:
            self._keep(workers)

    @property
    def idle_pids(self) -> tuple[int, ...]:
        """The process ids, by rank, of the workers that no run has."""
        with self._lock:
            return tuple(self._idle.pids) if self._idle else ()

    def end_idle(self, only: Workers | None = None) -> None:
        """End the workers that no run has, or `only` these if they are it."""
        with self._lock:
            if self._idle is not None and only in (None, self._idle):
                self._idle.end()
                self._idle = None

    def close(self) -> None:
        """End all of it; also while somebody waits for the nursery."""
        if self.owner == os.getpid() and self._nursery is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._nursery.close()  # and with it its workers
            self._nursery, self._idle = None, None

    def _started(self) -> Nursery:
        if self._nursery is None or not self._nursery.alive:
            self._nursery, self._idle = Nursery(), None
        return self._nursery

    def _grown(self, n_ranks: int) -> tuple[Workers, int]:
        workers, self._idle = self._idle, None
        if self._timer is not None:
            self._timer.cancel()
        if workers is not None and not workers.are_well:
            workers.end()
            workers = None
        workers = workers or Workers(self._started())
        try:
            return workers, workers.grow(n_ranks)
        except BaseException:
            workers.end()
            raise

    def _keep(self, workers: Workers) -> None:
        if self._idle is not None:
            self._idle.end()
        self._idle = workers
        self._timer = threading.Timer(_IDLE, self.end_idle, [workers])
        self._timer.daemon = True
        self._timer.start()


_making = threading.Lock()


def keeper() -> Keeper:
    """This process's."""
    with _making:
        return _keeper_of(os.getpid())


@cache
def _keeper_of(_process: int) -> Keeper:
    return Keeper()
