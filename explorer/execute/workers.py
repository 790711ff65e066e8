"""The workers as their caller has them: forked, spoken to, waited for, kept from run to run, ended."""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from explorer.execute._torch_ranks import LOOPBACK
from explorer.execute.by_value import to_bytes
from explorer.execute.files import Seen
from explorer.execute.nursery import Nursery
from explorer.execute.rehearsal import Rehearsal
from explorer.execute.reports import from_report
from explorer.execute.tasks import Order, Task

_BACKLOG = 128  # connections to the store that may be waiting


class Workers:
    """Processes that wait for tasks, each with its place among the ranks.

    Attributes:
        pids: of the workers, by rank.
        files: that they have imported modules of the caller's from.
    """

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._pipes: list[Connection] = []
        self._port = 0
        self._group: tuple[int, float] | None = None
        self._n_groups = 0
        self.pids: list[int] = []
        self.files = Seen()

    def grow(self, n_ranks: int) -> int:
        """Have at least so many; how many had to be forked for it."""
        n_before = len(self.pids)
        if not self.pids:
            with socket.create_server((LOOPBACK, 0), backlog=_BACKLOG) as listener:
                self._port = int(listener.getsockname()[1])
                self._fork(listener)
        while len(self.pids) < n_ranks:
            self._fork()
        return len(self.pids) - n_before

    def _fork(self, *more: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        self._pipes.append(Connection(ours.detach()))
        with theirs:
            self.pids.append(self._nursery.fork([theirs, *more]))

    @property
    def are_well(self) -> bool:
        """Whether all are there and have nothing more to say, and run what the caller's files say now."""
        return self._nursery.alive and not wait(self._pipes, 0) and not self.files.have_changed()

    def begin(self, n_ranks: int, timeout: float) -> Order:
        """What the ranks of a run need to meet: in the group they are in already, if that is the same.

        Args:
            n_ranks: that take part.
            timeout: seconds that a message to a worker, or from it, may take.
        """
        if self._group != (n_ranks, timeout):
            self._group = n_ranks, timeout
            self._n_groups += 1
        seconds = struct.pack("@ll", int(timeout), int(timeout % 1 * 1e6))
        for pipe in self._pipes:
            with socket.socket(fileno=pipe.fileno()) as same:
                for way in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                    same.setsockopt(socket.SOL_SOCKET, way, seconds)
                same.detach()  # the pipe's own
        return Order(self._n_groups, n_ranks, self._port, timeout)

    def send(self, order: Order, task: Task | Rehearsal) -> bool:
        """Give a worker its task; whether it was there to take it.

        Raises:
            ModelError: if what it holds cannot go to another process.
        """
        data = to_bytes(task, what="model")
        try:
            self._pipes[task.rank].send_bytes(to_bytes((order, task.rank, task.path, data), what="task"))
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
                yield rank, from_report(pipe.recv_bytes())
            except (EOFError, OSError):
                pipe.close()
                yield rank, None

    def end(self, gone: Collection[int] = ()) -> dict[int, int]:
        """End all; rank → the signal that had ended it before, or 0. `gone` ranks are ending by themselves."""
        for pipe in self._pipes:
            pipe.close()
        pids, self.pids, self._pipes = self.pids, [], []
        ending = [pids[rank] for rank in gone]
        signals = self._nursery.end(pids, ending=ending) if pids and self._nursery.alive else {}
        return {rank: signals.get(pid, 0) for rank, pid in enumerate(pids)}
