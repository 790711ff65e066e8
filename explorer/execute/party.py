"""Those that make one run together: this process alone, or all that torchrun has started, each of them a rank.

What only one of them may do (look at a folder, write into it, train the model in one piece), the first does, and all go
on with what it came to: with the same value, or with the same error.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch

from explorer import errors
from explorer.errors import ExplorerError, InputError, RunError
from explorer.execute._torch import on_loopback
from explorer.execute.clocks import default_store
from explorer.execute.devices import backend_of, whereabouts
from explorer.execute.exchange import FIRST, shared
from explorer.execute.speaking import is_started_by_torchrun
from explorer.execute.stages import first_line

Value = TypeVar("Value")

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NOT_YET, _NOW = 0, 1
_ON_DISK = ("checkpoint", "resume")


class Party(Protocol):
    """Who takes part in a run."""

    def decide(self, what: Callable[[], Value]) -> Value:
        """What `what` gives in the one process that calls it, for all."""


class Alone:
    """One process has the whole run in its hands."""

    def decide(self, what: Callable[[], Value]) -> Value:
        """What it gives."""
        return what()


class Joined:
    """All the ranks, each a process that calls everything as the others do.

    Args:
        group: of all ranks, which carries tensors of the host.
        seconds: in which the first says that it is still at work, while the others wait for it.

    Attributes:
        rank: of this process.
        number: of this run among those of these processes, from 1.
    """

    def __init__(self, group: Any, seconds: float) -> None:
        self.group, self._seconds = group, seconds
        self.rank: int = torch.distributed.get_rank()
        store = default_store()
        self.number = int(store.add(f"explorer_runs/{self.rank}", 1)) if store is not None else 0

    def decide(self, what: Callable[[], Value]) -> Value:
        """What the first comes to; however long it takes, the others wait while it is there.

        Raises:
            ExplorerError: what it raised, on every rank.
        """
        if self.rank != FIRST:
            with together():
                while self._said(_NOT_YET) == _NOT_YET:
                    pass
                told = shared(None, self.group)
            ours: Value = _opened(told)
            return ours
        error: Exception | None = None
        with self._at_work():
            try:
                verdict: tuple[Any, ...] = ("value", what())
            except Exception as raised:  # noqa: BLE001  the others wait for it
                error, verdict = raised, _closed(raised)
        with together():
            self._said(_NOW)
            shared(verdict, self.group)
        value: Value = _opened(verdict, error)
        return value

    def _said(self, word: int) -> int:
        """What the first says, for all."""
        said = torch.tensor([word])
        distributed: Any = torch.distributed
        distributed.broadcast(said, FIRST, group=self.group)
        return int(said)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Within it, the others hear now and then that there is nothing to go on with yet."""
        over = threading.Event()

        def speak() -> None:
            with contextlib.suppress(RuntimeError):  # who is gone is missed by what follows
                while not over.wait(self._seconds):
                    self._said(_NOT_YET)

        thread = threading.Thread(target=speak, name="explorer-at-work", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Within it, all ranks are needed.

    Raises:
        RunError: if one is gone.
    """
    try:
        yield
    except ExplorerError:
        raise
    except RuntimeError as error:
        raise RunError(
            f"every rank must run through; one is gone while the others wait for it ({first_line(error)}); see its own "
            "words"
        ) from error


@contextlib.contextmanager
def joined(n_ranks: int, model: Any, seconds: float) -> Iterator[Joined]:
    """All that torchrun has started, met.

    Args:
        n_ranks: that the run has.
        model: as the caller has it: a module, or a list of layers.
        seconds: after which a rank that is not heard of is given up.

    Raises:
        InputError: if torchrun has not started a process for each rank.
    """
    _check(n_ranks)
    with _group(whereabouts(model), seconds) as group:
        crew = Joined(group, seconds / 2)
        del group
        try:
            yield crew
        except BaseException as error:
            _let_go(error)
            raise
        finally:
            crew.group = None


def _let_go(error: BaseException | None) -> None:
    """Take from functions that have failed what they still hold.

    A group's connections close with the last that holds it, and only then do those hear of it who wait for this rank.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _check(n_ranks: int) -> None:
    if not is_started_by_torchrun():
        raise InputError(
            'backend="torchrun" runs in processes that torchrun has started; this one was not; try torchrun '
            f'--nproc-per-node {n_ranks} -m explorer execute …, or backend="processes"',
            argument="backend",
        )
    n_started = int(os.environ["WORLD_SIZE"])
    if n_started != n_ranks:
        raise InputError(
            f"torchrun starts a process for each rank; got {n_started} for {n_ranks} ranks; "
            f"try {n_started} ranks, or nnodes × nproc-per-node = {n_ranks}",
            argument="n_ranks",
            legal=(n_started,),
        )


@contextlib.contextmanager
def _group(device: torch.device, seconds: float) -> Iterator[Any]:
    """A group of all ranks that carries tensors of the host; torch's default group is made if there is none."""
    distributed: Any = torch.distributed
    limit, is_ours = timedelta(seconds=2 * seconds), not distributed.is_initialized()
    if is_ours:
        _meet(backend_of(device), limit)
    try:
        is_gloo = distributed.get_backend() == "gloo"
        yield distributed.group.WORLD if is_gloo else distributed.new_group(backend="gloo", timeout=limit)
    finally:
        if is_ours:
            distributed.destroy_process_group()


def _meet(backend: str, limit: timedelta) -> None:
    """Make torch's default group of all that torchrun has started.

    Its store outlives the group: with names of the group's own, no rank takes an address of the one before for the
    other's, and calls where nobody listens any more.

    Raises:
        RunError: if a rank does not come.
    """
    distributed: Any = torch.distributed
    # where all meet on the loopback, nothing listens elsewhere
    here = os.environ["MASTER_ADDR"] in _LOOPBACK and backend == "gloo"
    with together(), on_loopback() if here else contextlib.nullcontext():
        store, rank, n_ranks = next(distributed.rendezvous("env://", timeout=limit))
        store.set_timeout(limit)
        named = distributed.PrefixStore(f"explorer_groups/{store.add(f'explorer_groups/{rank}', 1)}", store)
        distributed.init_process_group(backend, store=named, rank=rank, world_size=n_ranks, timeout=limit)


def _closed(error: Exception) -> tuple[Any, ...]:
    """An error as values that travel."""
    if isinstance(error, InputError):
        where = f"; rank {FIRST} alone looks, on {socket.gethostname()}" if error.argument in _ON_DISK else ""
        return ("error", type(error).__name__, f"{error}{where}", error.argument, error.legal)
    if isinstance(error, ExplorerError):
        return ("error", type(error).__name__, str(error))
    said = f"every rank must run through; rank {FIRST} failed: {first_line(error)}; mend it there"
    return ("error", "RunError", said)


def _opened(verdict: tuple[Any, ...], error: Exception | None = None) -> Any:
    """The value in a verdict, or its error raised: the first rank's own, where this is that rank."""
    what, *rest = verdict
    if what == "value":
        return rest[0]
    kind: Any = getattr(errors, rest[0], RunError)
    if issubclass(kind, InputError):
        raise kind(rest[1], argument=rest[2], legal=rest[3]) from error
    if error is not None:
        raise error
    raise (kind if issubclass(kind, RunError) else RunError)(rest[1])
