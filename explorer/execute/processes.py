"""Execute a program in real processes: one a rank, from those that are kept for it."""

from __future__ import annotations

import time

from explorer.errors import ModelError
from explorer.execute.devices import check_devices, on_host
from explorer.execute.events import Started
from explorer.execute.failing import cause_of, silence
from explorer.execute.follower import Follower
from explorer.execute.hooks import Hooks
from explorer.execute.keeper import Lent, lent
from explorer.execute.parity import Outcome
from explorer.execute.places import Places
from explorer.execute.session import Bench
from explorer.execute.tasks import task_of
from explorer.execute.traced_stage import TracedStage
from explorer.execute.training import Job

_TICK = 0.1  # seconds between two looks at whether the run was stopped


def train_in_processes(job: Job, bench: Bench, hooks: Hooks) -> Outcome:
    """Warm up, then run every step, one process a rank; if it raises, all of them are gone.

    Raises:
        RunError: if a rank fails, ends, or is not heard of for long.
    """
    check_devices(job.program.n_ranks, bench.model.device)
    _check_can_travel(bench)
    with on_host(bench.model):
        try:
            follower = _followed(job, bench, hooks)
        except _DiedBeforeError:
            follower = _followed(job, bench, hooks)  # with new workers
    return follower.outcome()


def _check_can_travel(bench: Bench) -> None:
    """Refuse stages that torch's tracer has made on a GPU: it is written into their operations.

    Raises:
        ModelError: with what to do instead.
    """
    if bench.model.device.type != "cpu" and any(isinstance(stage, TracedStage) for stage in bench.model.stages):
        raise ModelError(
            "each rank in processes has a GPU of its own, and torch's tracer writes one GPU into the stages that it "
            'cuts; got a model with split_points on a GPU; give a list of layers, or run backend="kernel"',
            argument="split_points",
        )


class _DiedBeforeError(Exception):
    """A worker from an earlier run has ended without a word of this one."""


def _followed(job: Job, bench: Bench, hooks: Hooks) -> Follower:
    n_ranks = job.program.n_ranks
    with lent(n_ranks) as loan:
        workers, places, follower = loan.workers, Places(job.program), Follower(job, bench, hooks)
        order = workers.begin(n_ranks, job.timeout)
        for rank in range(n_ranks):
            workers.send(order, task_of(job, bench, rank))
        last_heard, is_started = time.monotonic(), False
        while not follower.is_done:
            for rank, report in workers.receive(_TICK):
                last_heard = time.monotonic()
                if report is None and rank in follower.done:
                    continue  # it has given all; the next run will not find it well
                if report is None and not places.has_begun(rank) and not loan.n_forked:
                    raise _DiedBeforeError
                if report is None or report[0] == "failed":
                    raise cause_of(workers, places, follower.done, rank, report, hear=follower.hear)
                if not is_started and report[0] == "rows":
                    is_started = True
                    hooks.started(_started(job, loan))
                places.note(rank, *report)
                follower.hear(rank, *report)
            hooks.pulse()
            if time.monotonic() - last_heard > job.timeout:
                raise silence(places, job.timeout)
        for done in follower.done.values():
            workers.files.add(done.files)
    return follower


def _started(job: Job, loan: Lent) -> Started:
    n_forked, waited = job.forked
    seconds = time.perf_counter() - job.begun
    return Started(job.program.n_ranks, n_forked + loan.n_forked, seconds, waited + loan.waited)
