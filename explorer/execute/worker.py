"""One rank in a process of its own: it runs its stages, times them and tells its caller. Our program, not the caller's.

It does one task after another. Everything is told through one pipe, as (what, step, value): "begin" and "end" of a
step, "rows" of what happened between them, "done" with what came of it, or "failed"; after that it does nothing more.
"""

from __future__ import annotations

import gc
import os
import re
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import torch

from explorer.errors import ExplorerError, ModelError
from explorer.execute._torch import quiet
from explorer.execute._torch_ranks import Courier, Ranks, barrier
from explorer.execute.by_value import from_bytes
from explorer.execute.checkpoint_state import optimizer_state_by_name, type_of
from explorer.execute.device_time import cuda_clock
from explorer.execute.devices import backend_of, settle
from explorer.execute.files import imported_since
from explorer.execute.hooks import Hooks
from explorer.execute.parity_rounding import Sketch, sketch_of
from explorer.execute.rank_session import RankBench, RankSession
from explorer.execute.rehearsal import Rehearsal
from explorer.execute.reporter import WARM_UP, Reporter
from explorer.execute.session import Bench
from explorer.execute.settings import keep_memory
from explorer.execute.stages import first_line
from explorer.execute.tasks import Between, Done, Failure, Order, Task, stages_of, warm_up_of
from explorer.execute.training import optimizers_of, tell_held, update

_ECHO = re.compile(r"gloo|connection|peer|timed out|timeout|store|socket|rendezvous", re.IGNORECASE)


def main(descriptors: list[int]) -> None:
    """Do tasks: the first descriptor is the caller's pipe, the second, if any, the store's listening socket."""
    pipe = Connection(descriptors[0])
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    listener = socket.socket(fileno=descriptors[1]) if len(descriptors) > 1 else None
    torch.set_num_threads(1)
    keep_memory()
    ranks: Ranks | None = None
    ours = frozenset(sys.modules)
    while True:
        order, rank, path, data = from_bytes(tasks.get())
        sys.path[:] = path
        ranks = ranks or Ranks(rank, listener)
        reporter = Reporter(pipe)
        try:
            _work(order, data, ranks, reporter, ours)
        except Exception as error:  # noqa: BLE001  the caller is told of everything
            reporter.flush()
            reporter.tell("failed", failure_of(error))
            threading.Event().wait()  # the sockets stay open, so that no other rank fails of this one's end
        del data
        gc.collect()


def _listen(pipe: Connection, tasks: SimpleQueue[bytes]) -> None:
    """Take tasks from the caller, and end when it does."""
    try:
        while True:
            tasks.put(pipe.recv_bytes())
    finally:
        os._exit(1)


def _work(order: Order, data: bytes, ranks: Ranks, reporter: Reporter, ours: frozenset[str]) -> None:
    try:
        task: Task | Rehearsal = from_bytes(data)
    except Exception as error:
        raise ModelError(
            f"a worker must be able to import what the model is made of; it failed with {first_line(error)}; put that "
            'file where Python finds it, or run backend="kernel"'
        ) from error
    if isinstance(task, Rehearsal):
        task.run(reporter.tell)
        reporter.tell("rehearsed", imported_since(ours))
        return

    def join(backend: str) -> None:
        ranks.join(order.group, order.n_ranks, order.port, 2 * order.timeout, backend=backend)

    run_rank(task, reporter, join, ours)


def run_rank(
    task: Task, reporter: Reporter, join: Callable[[str], None], ours: frozenset[str], *, place: int | None = None
) -> None:
    """Run one rank's part, and tell of it.

    Args:
        task: its part.
        reporter: who is told.
        join: called with what is to carry messages, before the first one.
        ours: modules that were there before the caller's.
        place: of the rank's device on this machine; None for its rank.
    """
    torch.set_default_dtype(task.dtype)
    program = task.job.program
    device = settle(task, place)
    reporter.on_device = device.type == "cuda"
    clock: Any = cuda_clock(device) if reporter.on_device else time.perf_counter
    bench = RankBench(task.model, task.samples(device), task.job.loss, clock, task.seeds)
    courier = Courier(clock, reporter.waits, reporter.parcel)
    join(backend_of(device))
    with quiet(), courier.installed(), reporter.tended():
        reporter.begin(WARM_UP)
        _warm_up(task, bench, reporter, courier)
        reporter.between_steps()
        session = RankSession(task.rank, program, bench, reporter, courier, faults=task.job.faults)
        sketches = _train(task, bench, reporter, session)
    reporter.tell("done", _done(task, bench, session, imported_since(ours), sketches))


def failure_of(error: Exception) -> Failure:
    """What ended a rank, for others to be told."""
    known = isinstance(error, ExplorerError)
    message = str(error) if known else first_line(error)
    # what torch raises outside of any action is of messages
    echo = bool(_ECHO.search(message)) and (not known or message.startswith("a step must run through"))
    return Failure(message, known, echo, traceback.format_exc())


def _warm_up(task: Task, bench: Bench, reporter: Reporter, courier: Courier) -> None:
    """One short step that leaves nothing behind: connections, pages and caches are paid for here."""
    buffers = {buffer: buffer.detach().clone() for buffer in bench.buffers()}
    program, job = warm_up_of(task.job.program), task.job
    session = RankSession(task.rank, program, bench, reporter, courier)
    targets = None if job.targets is None else job.targets[: program.n_micro_batches]
    session.step(0, job.inputs[: program.n_micro_batches], targets)
    with torch.no_grad():
        for buffer, before in buffers.items():
            buffer.copy_(before)
    for parameter in bench.model.parameters.values():
        parameter.grad = None
    reporter.end(0.0)


def _train(task: Task, bench: Bench, reporter: Reporter, session: RankSession) -> list[Sketch]:
    job, hooks = task.job, Hooks([reporter])
    optimizers, sketches = optimizers_of(job, bench.model), list[Sketch]()
    for step in range(job.n_steps):
        barrier()
        reporter.begin(step)
        tell_held(job, bench, optimizers, hooks, step)
        loss = session.step(step, job.inputs, job.targets)
        sketches.append(sketch_of(bench.model.parameters))
        update(job, bench, optimizers, hooks, step)
        reporter.end(loss)
        if job.saving is not None and job.saving.is_due(step):
            kept = optimizer_state_by_name(optimizers.values(), bench.model.parameters)
            reporter.tell("state", Between(_states(task, bench), kept, type_of(optimizers.values())))
        reporter.between_steps()
    return sketches


def _states(task: Task, bench: Bench) -> dict[int, dict[str, torch.Tensor]]:
    return {
        stage: {name: value.cpu() for name, value in bench.model.stages[stage].state_dict().items()}
        for stage in stages_of(task.job.program, task.rank)
    }


def _done(task: Task, bench: Bench, session: RankSession, files: dict[str, int], sketches: Sequence[Sketch]) -> Done:
    gradients = {name: p.grad.cpu() for name, p in bench.model.parameters.items() if p.grad is not None}
    outputs = {micro_batch: output.cpu() for micro_batch, output in session.conductor.outputs.items()}
    return Done(_states(task, bench), gradients, outputs, files, sketches)
