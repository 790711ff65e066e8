"""The workers of one run as their caller has them: forked, spoken to, waited for, ended."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from collections.abc import Collection, Iterator
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from explorer.execute._torch_ranks import LOOPBACK
from explorer.execute.by_value import from_bytes, to_bytes
from explorer.execute.nursery import Nursery
from explorer.execute.tasks import Task


class Workers:
    """One process a rank, gone when the block is left, however it is left."""

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._nursery = _nursery()
        self._pipes: list[Connection] = []
        self.pids: list[int] = []
        self.port = 0

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _start(self) -> None:
        with socket.create_server((LOOPBACK, 0), backlog=2 * self._n_ranks) as listener:
            self.port = int(listener.getsockname()[1])
            for rank in range(self._n_ranks):
                ours, theirs = socket.socketpair()
                self._pipes.append(Connection(ours.detach()))
                with theirs:
                    self.pids.append(self._nursery.fork([theirs, listener] if rank == 0 else [theirs]))

    def send(self, task: Task) -> bool:
        """Give a worker its task; whether it was there to take it.

        Raises:
            ModelError: if what it holds cannot go to another process.
        """
        data = to_bytes(task, what="model")
        try:
            self._pipes[task.rank].send_bytes(to_bytes((task.path, data), what="task"))
        except OSError:
            return False
        return True

    def receive(self, seconds: float) -> Iterator[tuple[int, Any]]:
        """Rank and report of each worker that has one within so many seconds; None when it has ended."""
        open_pipes = [pipe for pipe in self._pipes if not pipe.closed]
        for ready in wait(open_pipes, seconds):
            pipe = open_pipes[open_pipes.index(ready)]  # type: ignore[arg-type]
            rank = self._pipes.index(pipe)
            try:
                yield rank, from_bytes(pipe.recv_bytes())
            except (EOFError, OSError):
                pipe.close()
                yield rank, None

    def end(self, gone: Collection[int] = ()) -> dict[int, int]:
        """End all; rank → the signal that had ended it before, or 0. `gone` ranks are ending by themselves."""
        for pipe in self._pipes:
            pipe.close()
        pids, self.pids = self.pids, []
        ending = [pids[rank] for rank in gone]
        signals = self._nursery.end(pids, ending=ending) if pids and self._nursery.alive else {}
        return {rank: signals.get(pid, 0) for rank, pid in enumerate(pids)}


def prepare() -> None:
    """Start what workers are forked from, if it is not there: the first run then begins as soon as any other."""
    _nursery()


class _Keeper:
    """Keeps one nursery for this process: a process that was forked from it makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nursery: Nursery | None = None
        self._owner = 0
        atexit.register(self.close)

    def get(self) -> Nursery:
        """The nursery, started if need be."""
        with self._lock:
            if self._nursery is None or self._owner != os.getpid() or not self._nursery.alive:
                self._nursery, self._owner = Nursery(), os.getpid()
            return self._nursery

    def close(self) -> None:
        """End it."""
        with self._lock:
            if self._nursery is not None and self._owner == os.getpid():
                self._nursery.close()
                self._nursery = None


@cache
def _keeper() -> _Keeper:
    return _Keeper()


def _nursery() -> Nursery:
    return _keeper().get()


def search_path() -> list[str]:
    """Where this process looks for modules, for a process that starts elsewhere."""
    return [path or str(Path.cwd()) for path in sys.path]
