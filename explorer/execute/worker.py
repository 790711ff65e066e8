"""One rank in a process of its own: it runs its stages, times them and tells its caller. Our program, not the caller's.

Everything is told through one pipe, as (what, step, value): "begin" and "end" of a step, "rows" of what happened
between them, "done" with what came of it, or "failed".
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from explorer.core import Action
from explorer.errors import ExplorerError
from explorer.execute._torch import Engine, quiet
from explorer.execute._torch_ranks import Courier, Parcel, RankEngine, RankStage, barrier, ranks_group
from explorer.execute.by_value import from_bytes, to_bytes
from explorer.execute.hooks import Hook, Hooks, Memory, SlotEnd, Updated
from explorer.execute.session import Bench, Session
from explorer.execute.settings import keep_memory
from explorer.execute.stages import first_line
from explorer.execute.tasks import Done, Failure, Task, flattened, stages_of
from explorer.execute.training import tell_held, update
from explorer.execute.updates import make_optimizers

LONGEST_WAIT = 60.0  # seconds for another rank's message
WARM_UP = -1  # the number of the hidden step
_EVERY = 0.03  # seconds between two reports
_ECHO = re.compile(r"gloo|connection|peer|timed out|timeout|store|socket|rendezvous", re.IGNORECASE)


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


class RankSession(Session):
    """Steps of one rank's part of a program."""

    def __init__(self, task: Task, program: Any, bench: Bench, reporter: Reporter, courier: Courier) -> None:
        self._rank, self._courier, self._reporter = task.rank, courier, reporter
        offsets = program.rank_offsets
        order = np.arange(offsets[task.rank], offsets[task.rank + 1])
        super().__init__(program, order, bench, Hooks([reporter]))

    def _assemble(self, bench: Bench) -> Engine:
        program, loss = self._program, bench.loss
        last = program.n_stages - 1
        stages = [
            RankStage(
                bench.model.stages[stage],
                stage,
                program.n_stages,
                inputs=bench.samples[stage].inputs,
                outputs=bench.samples[stage].outputs,
                watch=self.conductor,
                computes_loss=loss is not None and stage == last,
                courier=self._courier,
            )
            for stage in stages_of(program, self._rank)
        ]
        orders: dict[int, list[Action]] = {rank: [] for rank in range(program.n_ranks)}
        for index, rank in enumerate(program.rank_of_action.tolist()):
            orders[rank].append(program.action(index))
        return RankEngine(
            stages,
            program.n_micro_batches,
            loss,
            trains=program.has_backward,
            orders=orders,
            rank_of_stage=program.placement.routes[0].tolist(),
        )

    @property
    def is_computing(self) -> bool:
        """Whether an action is under way, so that what fails is no message."""
        return self.conductor.running is not None

    def _moment(self) -> str:
        return "warming up" if self._reporter.step == WARM_UP else super()._moment()


def main(descriptors: list[int]) -> None:
    """Do one task: the first descriptor is the caller's pipe, the second, if any, the store's listening socket."""
    pipe = Connection(descriptors[0])
    listener = socket.socket(fileno=descriptors[1]) if len(descriptors) > 1 else None
    path, data = from_bytes(pipe.recv_bytes())
    sys.path[:] = path
    reporter = Reporter(pipe)
    try:
        task: Task = from_bytes(data)
    except Exception as error:  # noqa: BLE001  whatever importing the caller's modules raises
        message = (
            f"a worker must be able to import what the model is made of; it failed with {first_line(error)}; put that "
            'file where Python finds it, or run backend="kernel"'
        )
        reporter.tell("failed", Failure(message, True, False, traceback.format_exc()))
        return
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    try:
        _run(task, reporter, listener)
    except Exception as error:  # noqa: BLE001  the caller is told of everything
        reporter.flush()
        reporter.tell("failed", _failure(error))
        threading.Event().wait()  # the sockets stay open, so that no other rank fails of this one's end


def _end_with(pipe: Connection) -> None:
    """End when the caller does: it never sends anything more, so that a read ends only with its pipe."""
    try:
        pipe.recv_bytes()
    finally:
        os._exit(1)


def _failure(error: Exception) -> Failure:
    known = isinstance(error, ExplorerError)
    message = str(error) if known else first_line(error)
    # what torch raises outside of any action is of messages
    echo = bool(_ECHO.search(message)) and (not known or message.startswith("a step must run through"))
    return Failure(message, known, echo, traceback.format_exc())


def _run(task: Task, reporter: Reporter, listener: socket.socket | None) -> None:
    torch.set_num_threads(1)
    keep_memory()
    program = task.job.program
    bench = Bench(task.model, task.samples(), task.job.loss, time.perf_counter, task.seeds)
    courier = Courier(time.perf_counter, reporter.flush_if_due, reporter.parcel)
    group = ranks_group(task.rank, program.n_ranks, task.port, listener, seconds=LONGEST_WAIT)
    with quiet(), group, courier.installed():
        reporter.tell("begin", time.perf_counter())
        _warm_up(task, bench, reporter, courier)
        session = RankSession(task, program, bench, reporter, courier)
        _train(task, bench, reporter, session)
        barrier()


def _warm_up(task: Task, bench: Bench, reporter: Reporter, courier: Courier) -> None:
    """One step that leaves nothing behind: connections, pages and caches are paid for here."""
    buffers = {buffer: buffer.detach().clone() for stage in bench.model.stages for buffer in stage.buffers()}
    session = RankSession(task, flattened(task.job.program), bench, reporter, courier)
    session.step(0, task.job.inputs, task.job.targets)
    with torch.no_grad():
        for buffer, before in buffers.items():
            buffer.copy_(before)
    for parameter in bench.model.parameters.values():
        parameter.grad = None
    reporter.flush()
    reporter.tell("end", 0.0)


def _train(task: Task, bench: Bench, reporter: Reporter, session: RankSession) -> None:
    job, hooks = task.job, Hooks([reporter])
    optimizers = make_optimizers(job.optimizer, bench.model) if job.program.has_backward else {}
    for step in range(job.n_steps):
        barrier()
        reporter.step = step
        reporter.tell("begin", time.perf_counter())
        tell_held(job, bench, optimizers, hooks, step)
        loss = session.step(step, job.inputs, job.targets)
        update(job, bench, optimizers, hooks, step)
        reporter.flush()
        reporter.tell("end", loss)
    states = {stage: bench.model.stages[stage].state_dict() for stage in stages_of(job.program, task.rank)}
    gradients = {name: p.grad for name, p in bench.model.parameters.items() if p.grad is not None}
    reporter.tell("done", Done(states, gradients, dict(session.conductor.outputs)))
