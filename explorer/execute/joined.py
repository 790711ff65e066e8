"""Execute a program in the processes that torchrun has started, on this machine or several: each is a rank.

Every rank makes the same program, model and batch for itself and runs its part. Between two steps each tells the others
what it measured, so that all have the whole run while it goes on, and no message of a step meets one of ours; clocks
are brought onto rank 0's by measured offsets. Checkpoints are put together and written by rank 0.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch

from explorer.errors import ExplorerError, InputError, ModelError, RunError
from explorer.execute.aligning import Passing, RankClock
from explorer.execute.clocks import default_store, find_offset
from explorer.execute.devices import on_host
from explorer.execute.exchange import FIRST, exchanged, gathered
from explorer.execute.follower import Follower
from explorer.execute.hooks import Hooks
from explorer.execute.parity import Outcome
from explorer.execute.party import Joined, together
from explorer.execute.reporter import Reporter
from explorer.execute.session import Bench
from explorer.execute.stages import first_line
from explorer.execute.tasks import task_of
from explorer.execute.training import Job
from explorer.execute.worker import failure_of, run_rank

_FAILED = "explorer_failed"
_MOMENT = timedelta(seconds=2)  # in which the cause of what may be an echo is waited for
_OF_A_HOOK = "a run's hooks must not fail; one on rank {} did: {}; mend it there"
_AFRESH = 2.0  # seconds after which clocks are compared again


def train_joined(job: Job, bench: Bench, hooks: Hooks, party: Joined) -> Outcome:
    """Warm up, then run every step, this process its rank's part; all ranks come to the same outcome.

    Raises:
        InputError: if the ranks were called with different numbers.
        ModelError: if they have not made the same model and batch.
        RunError: if a rank fails.
    """
    with on_host(bench.model):
        reports = Reports(job, bench, hooks, party)
        with together():
            _check_same(job, bench, party.group)
            reports.start()
        _run(job, bench, reports, party)
    return reports.outcome()


class Reports(Reporter):
    """Keeps what its rank reports; between two steps all ranks exchange what they have, and hear it."""

    def __init__(self, job: Job, bench: Bench, hooks: Hooks, party: Joined) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._party, self._hooks, self._passing = party, hooks, Passing()
        self._follower = Follower(job, bench, Hooks([hooks, self._passing]))
        self._kept: list[tuple[str, int, Any]] = []
        self._clocks: list[RankClock] = []
        self._now = self._compared = 0.0  # seconds on rank 0's clock, so that all ranks see the same
        self.hook_error: Exception | None = None

    def tell(self, what: str, value: Any) -> None:
        """Keep it."""
        with self._lock:
            self._kept.append((what, self.step, value))

    def start(self) -> None:
        """Compare clocks."""
        self._clocks = [RankClock([each]) for each in exchanged(_comparison(self._party.group), self._party.group)]

    def between_steps(self) -> None:
        """Exchange what there is, hear it, and save what is to be saved."""
        self._exchange(compares=self._now - self._compared > _AFRESH)

    def finish(self) -> None:
        """Exchange what the ranks have come to, and hold the clocks against the messages."""
        self._exchange(compares=True)
        offsets = tuple(clock.offset for clock in self._clocks)
        self._passing.check(offsets)
        self._hooks.aligned(offsets)

    def outcome(self) -> Outcome:
        """What the run came to."""
        return self._follower.outcome()

    def _exchange(self, *, compares: bool) -> None:
        """Tell and hear; all ranks compare their clocks besides, or none does."""
        with self._lock:
            kept, self._kept = self._kept, []
        group = self._party.group
        if compares:
            for clock, each in zip(self._clocks, exchanged(_comparison(group), group), strict=True):
                clock.note(each)
            self._compared = self._now
        everybody = exchanged([report for report in kept if report[0] != "state"], group)
        self._now = max((value for what, _, value in everybody[FIRST] if what == "begin"), default=self._now)
        for rank, reports in enumerate(everybody):
            clock = self._clocks[rank]
            self._hear(rank, [(what, step, clock.report(what, value)) for what, step, value in reports])
        for report in kept:
            if report[0] == "state":
                self._save(report)

    def _hear(self, rank: int, reports: Sequence[tuple[str, int, Any]]) -> None:
        try:
            for what, step, value in reports:
                self._follower.hear(rank, what, step, value)
            self._hooks.pulse()
        except Exception as error:
            self.hook_error = error
            raise

    def _save(self, report: tuple[str, int, Any]) -> None:
        """Bring the parts of a state together on the first rank, which writes it; all learn if that fails."""
        parts = gathered(report, self._party.group)

        def write() -> None:
            for rank, part in enumerate(parts):
                self._follower.hear(rank, *part)

        self._party.decide(write)


def _run(job: Job, bench: Bench, reports: Reports, party: Joined) -> None:
    place = int(os.environ.get("LOCAL_RANK", "0"))
    try:
        task = task_of(job, bench, party.rank)
        run_rank(task, reports, lambda backend: None, frozenset(sys.modules), place=place)
        reports.finish()
    except Exception as error:
        if error is reports.hook_error:
            said = str(error) if isinstance(error, ExplorerError) else _OF_A_HOOK.format(party.rank, first_line(error))
            _tell(default_store(), party, said)
            raise
        _fail(error, party)


def _fail(error: Exception, party: Joined) -> NoReturn:
    """Raise what failed first, here or on another rank."""
    failure, store = failure_of(error), default_store()
    said = _told(store, party) if failure.is_echo else _tell(store, party, failure.message)
    if said:
        raise RunError(said) from error
    if isinstance(error, ExplorerError):
        raise error
    raise RunError(f"every rank must run through; this one failed: {failure.message}; mend it there") from error


def _told(store: Any, party: Joined) -> str:
    """What another rank has failed of; "" if none says so in time."""
    key = f"{_FAILED}/{party.number}"
    try:
        store.wait([key], _MOMENT)
        return str(store.get(key).decode())
    except (RuntimeError, AttributeError):  # nobody has told, or there is no store any more
        return ""


def _tell(store: Any, party: Joined, message: str) -> str:
    """Tell the others; "", for it is no other's failure."""
    with contextlib.suppress(RuntimeError, AttributeError):
        store.set(f"{_FAILED}/{party.number}", message)
    return ""


def _comparison(group: Any) -> list[float]:
    """When, and by how much this rank's clock is ahead of rank 0's."""
    offset = find_offset(group, torch.device("cpu"))
    if offset is None:
        raise RunError("all ranks compare their clocks; some did not come to it in time; give more than this timeout")
    return [time.perf_counter(), *offset]


def _check_same(job: Job, bench: Bench, group: Any) -> None:
    """Refuse ranks that were called otherwise, or have not made the same model and batch."""
    program = job.program
    called = {"n_steps": job.n_steps, "program": f"{program.name} of {program.n_micro_batches} micro-batches"}
    tensors = [*bench.model.state().values(), *(one for values in job.inputs for one in values), *(job.targets or ())]
    made = [[list(tensor.shape), float(tensor.detach().double().sum())] for tensor in tensors]
    everybody = exchanged([called, made], group)
    for rank, (theirs, theirs_made) in enumerate(everybody):
        for argument, value in everybody[FIRST][0].items():
            if theirs[argument] != value:
                raise InputError(
                    f"all ranks call execute alike; rank {rank} has {argument}={theirs[argument]}, rank 0 {value}; "
                    "give all the same",
                    argument=argument,
                )
        if theirs_made != everybody[FIRST][1]:
            raise ModelError(
                f"all ranks make the same model and batch for themselves; rank {rank}'s differ from rank 0's; make "
                "both from one seed, as by torch.manual_seed(0)",
                argument="model",
            )
