"""Execute a program in the processes that torchrun has started, on this machine or several: each is a rank.

Every rank makes the same program, model and batch for itself and runs its part. In the end each tells the others what
it measured and came to, so that all have the whole run; their clocks are brought onto rank 0's by measured offsets.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NoReturn

import torch

from explorer.errors import ExplorerError, InputError, ModelError, RunError
from explorer.execute._torch import _on_loopback
from explorer.execute.aligning import Passing, RankClock
from explorer.execute.clocks import default_store, find_offset
from explorer.execute.devices import backend_of, on_host
from explorer.execute.exchange import exchanged
from explorer.execute.follower import Follower
from explorer.execute.hooks import Hooks
from explorer.execute.parity import Outcome
from explorer.execute.reporter import Reporter
from explorer.execute.session import Bench
from explorer.execute.tasks import task_of
from explorer.execute.training import Job
from explorer.execute.worker import failure_of, run_rank

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FAILED = "explorer_failed"
_MOMENT = timedelta(seconds=2)  # in which the cause of what may be an echo is waited for


def is_started_by_torchrun(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is one of several that torchrun has started."""
    return all(name in environment for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def train_joined(job: Job, bench: Bench, hooks: Hooks) -> Outcome:
    """Warm up, then run every step, this process its rank's part; all ranks come to the same outcome.

    Raises:
        InputError: if torchrun has not started a process for each rank, or a checkpoint is asked for.
        ModelError: if the ranks have not made the same model and batch.
        RunError: if a rank fails.
    """
    _check(job)
    with _group(bench.model.device, job.timeout) as group, on_host(bench.model):
        rank = torch.distributed.get_rank()
        _check_same(job, bench, group)
        comparisons = [_compared(group)]
        reports = _run(job, bench, rank)
        comparisons.append(_compared(group))
        everybody = exchanged((comparisons, reports), group)
    clocks, passing = [RankClock(compared) for compared, _ in everybody], Passing()
    follower = Follower(job, bench, Hooks([hooks, passing]))
    for rank, (_, theirs) in enumerate(everybody):
        for what, step, value in theirs:
            follower.hear(rank, what, step, clocks[rank].report(what, value))
    offsets = tuple(clock.offset for clock in clocks)
    passing.check(offsets)
    hooks.aligned(offsets)
    return follower.outcome()


class _Kept(Reporter):
    """Keeps what it is told until the end."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.reports: list[tuple[str, int, Any]] = []

    def tell(self, what: str, value: Any) -> None:
        """Keep it."""
        self.reports.append((what, self.step, value))


def _run(job: Job, bench: Bench, rank: int) -> list[tuple[str, int, Any]]:
    reporter = _Kept()
    place = int(os.environ.get("LOCAL_RANK", "0"))
    try:
        run_rank(task_of(job, bench, rank), reporter, lambda backend: None, frozenset(sys.modules), place=place)
    except Exception as error:  # noqa: BLE001  the other ranks are told of everything
        _fail(error)
    return reporter.reports


def _fail(error: Exception) -> NoReturn:
    """Raise what failed first, here or on another rank."""
    failure, store = failure_of(error), default_store()
    said = _told(store) if failure.is_echo else _tell(store, failure.message)
    if said:
        raise RunError(said) from error
    if isinstance(error, ExplorerError):
        raise error
    raise RunError(f"every rank must run through; this one failed: {failure.message}; mend it there") from error


def _told(store: Any) -> str:
    """What another rank has failed of; "" if none says so in time."""
    try:
        store.wait([_FAILED], _MOMENT)
        return str(store.get(_FAILED).decode())
    except (RuntimeError, AttributeError):  # nobody has told, or there is no store any more
        return ""


def _tell(store: Any, message: str) -> str:
    """Tell the others; "", for it is no other's failure."""
    with contextlib.suppress(RuntimeError, AttributeError):
        store.set(_FAILED, message)
    return ""


@contextlib.contextmanager
def _group(device: torch.device, seconds: float) -> Iterator[Any]:
    """A group of all ranks that carries tensors of the host; torch's default group is made if there is none."""
    distributed: Any = torch.distributed
    limit, is_ours = timedelta(seconds=2 * seconds), not distributed.is_initialized()
    if is_ours:
        # where all meet on the loopback, nothing listens elsewhere
        here = os.environ["MASTER_ADDR"] in _LOOPBACK and backend_of(device) == "gloo"
        with _on_loopback() if here else contextlib.nullcontext() as options:
            if options is not None:
                options._timeout = limit  # noqa: SLF001  options given, torch ignores the argument
            distributed.init_process_group(backend_of(device), timeout=limit, pg_options=options)
    try:
        is_gloo = distributed.get_backend() == "gloo"
        yield distributed.group.WORLD if is_gloo else distributed.new_group(backend="gloo", timeout=limit)
    finally:
        if is_ours:
            distributed.destroy_process_group()


def _compared(group: Any) -> list[float]:
    """When, and by how much this rank's clock is ahead of rank 0's."""
    offset = find_offset(group, torch.device("cpu"))
    if offset is None:
        raise RunError("all ranks compare their clocks; some did not come to it in time; give more than this timeout")
    return [time.perf_counter(), *offset]


def _check(job: Job) -> None:
    n_ranks = job.program.n_ranks
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
    if job.saving is not None:
        raise InputError(
            "checkpoints are written by one process for all ranks; under torchrun there is none; use "
            'backend="processes", or leave checkpoint out',
            argument="checkpoint",
        )


def _check_same(job: Job, bench: Bench, group: Any) -> None:
    """Refuse ranks that have not made the same model and batch."""
    tensors = [*bench.model.state().values(), *(one for values in job.inputs for one in values), *(job.targets or ())]
    shapes = [[list(tensor.shape), float(tensor.detach().double().sum())] for tensor in tensors]
    everybody = exchanged(shapes, group)
    other = next((rank for rank, theirs in enumerate(everybody) if theirs != everybody[0]), None)
    if other is not None:
        raise ModelError(
            f"all ranks make the same model and batch for themselves; rank {other}'s differ from rank 0's; make both "
            "from one seed, as by torch.manual_seed(0)",
            argument="model",
        )
