"""Execute a program in real processes: one a rank, their reports put together as they come."""

from __future__ import annotations

import dataclasses
import math
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch

from explorer.core import Action, Costs, Kind
from explorer.errors import RunError
from explorer.execute._torch_ranks import Parcel
from explorer.execute.calibrate import Probe, costs_of
from explorer.execute.hooks import (
    Calibrated,
    Hooks,
    Memory,
    Message,
    SlotEnd,
    SlotStart,
    StepEnd,
    StepStart,
    Transfer,
    Updated,
)
from explorer.execute.parity import Outcome
from explorer.execute.real_clock import latency_of, seen
from explorer.execute.session import Bench
from explorer.execute.tasks import Done, Failure, task_of
from explorer.execute.training import Job
from explorer.execute.worker import LONGEST_WAIT, WARM_UP
from explorer.execute.workers import Workers, search_path

_TICK = 0.1  # seconds between two looks at whether the run was stopped
_SILENCE = 2 * LONGEST_WAIT  # seconds without any report after which a run is given up
_ECHOES = 0.5  # seconds in which the cause of what may be an echo is waited for
_SENT_AS = {Kind.RECV_F: (Kind.SEND_F, -1), Kind.RECV_B: (Kind.SEND_B, 1)}


def train_in_processes(job: Job, bench: Bench, hooks: Hooks) -> Outcome:
    """Warm up, then run every step, one process a rank; all of them are gone when this returns or raises.

    Raises:
        RunError: if a rank fails, ends, or is not heard of for long.
    """
    with Workers(job.program.n_ranks) as workers:
        follower = _Follower(job, bench, hooks)
        path = search_path()
        for rank in range(job.program.n_ranks):
            workers.send(task_of(job, bench, rank, path=path, port=workers.port))
        last_heard = time.monotonic()
        while not follower.is_done:
            for rank, report in workers.receive(_TICK):
                last_heard = time.monotonic()
                if report is None and follower.has_done(rank):
                    continue
                if report is None or report[0] == "failed":
                    raise _cause(workers, follower, rank, report)
                follower.hear(rank, *report)
            hooks.pulse()
            if time.monotonic() - last_heard > _SILENCE:
                raise RunError(
                    f"every rank must go on; none has been heard of for {_SILENCE:.0f} s, "
                    f"{follower.whereabouts()}; look for a loop or a lock there"
                )
    return follower.outcome()


def _cause(workers: Workers, follower: _Follower, rank: int, report: Any) -> RunError:
    """What the run failed of: of several reports the one that no other can have caused."""
    ended, failures = set[int](), dict[int, Failure]()
    limit = time.monotonic() + _ECHOES
    reports: Iterator[tuple[int, Any]] = iter([(rank, report)])
    while True:
        for who, what in reports:
            if what is None:
                ended.update(() if follower.has_done(who) else (who,))
            elif what[0] == "failed":
                failures[who] = what[2]
            else:
                follower.note(who, *what)
        causes = [who for who in failures if not failures[who].is_echo]
        if causes or ended or time.monotonic() > limit:
            break
        reports = workers.receive(_TICK)
    silent = sorted(ended - failures.keys())
    signals = workers.end(gone=silent)
    if silent:
        who = max(silent, key=lambda rank: bool(signals.get(rank)))  # one that was killed, if any was
        return RunError(_ended(who, signals.get(who, 0), follower))
    who = (causes or sorted(failures))[0]
    return _failed(who, failures[who], follower)


def _ended(rank: int, number: int, follower: _Follower) -> str:
    how = f"was ended by {signal.Signals(number).name}" if number else "has ended by itself"
    advice = "the system may have been short of memory" if number == signal.SIGKILL else "see the error stream"
    return f"every rank must run through; rank {rank} {how} {follower.place_of(rank)}; {advice}"


def _failed(rank: int, failure: Failure, follower: _Follower) -> RunError:
    if failure.is_known and not failure.is_echo:
        error = RunError(failure.message)
    else:
        place = follower.place_of(rank)
        error = RunError(f"every rank must run through; rank {rank} failed {place}: {failure.message}; mend it there")
    error.__cause__ = InWorker(rank, failure.details)
    return error


class InWorker(Exception):  # noqa: N818  it is no error of its own: it shows where another process had one
    """Where in a worker an error came from."""

    def __init__(self, rank: int, details: str) -> None:
        super().__init__(f"on rank {rank}:\n{details}")
        self.rank = rank


class _Follower:
    """Puts the ranks' reports together, step by step, and tells the hooks."""

    def __init__(self, job: Job, bench: Bench, hooks: Hooks) -> None:
        self._job, self._bench, self._hooks = job, bench, hooks
        self._step, self._is_started = WARM_UP, False
        self._zero = 0.0
        self._begun: dict[int, dict[int, float]] = defaultdict(dict)
        self._losses: dict[int, dict[int, float]] = defaultdict(dict)
        self._waiting: dict[int, list[tuple[int, list[Any]]]] = defaultdict(list)
        self._sent: dict[tuple[Kind, int, int], tuple[int, Parcel]] = {}
        self._received: dict[tuple[Kind, int, int], tuple[int, Parcel]] = {}
        self._messages: list[Message] = []
        self._probe = Probe()
        self._done: dict[int, Done] = {}
        self._last: dict[int, tuple[int, str]] = {}

    @property
    def is_done(self) -> bool:
        """Whether all ranks have given back what they came to."""
        return len(self._done) == self._job.program.n_ranks

    def has_done(self, rank: int) -> bool:
        """Whether this rank has, and may end."""
        return rank in self._done

    def note(self, rank: int, what: str, step: int, value: Any) -> None:
        """Remember how far a rank has come."""
        if what == "begin":
            self._last[rank] = step, ""
        elif what == "rows":
            slots = [row for row in value if isinstance(row, SlotEnd)]
            if slots:
                self._last[rank] = step, str(slots[-1].actions[-1])

    def hear(self, rank: int, what: str, step: int, value: Any) -> None:
        """Take one report; what belongs to a step that has yet to begin is kept until then."""
        self.note(rank, what, step, value)
        if what == "begin":
            self._begun[step][rank] = value
        elif what == "rows":
            self._waiting[step].append((rank, value))
        elif what == "end":
            self._losses[step][rank] = value
        elif what == "done":
            self._done[rank] = value
        self._go_on()

    def place_of(self, rank: int) -> str:
        """Where a rank was heard of last, in words."""
        step, action = self._last.get(rank, (WARM_UP, ""))
        moment = "warming up" if step == WARM_UP else f"in step {step}"
        return f"{moment}, after {action}" if action else moment

    def whereabouts(self) -> str:
        """Where all ranks were heard of last."""
        return ", ".join(f"rank {rank} {self.place_of(rank)}" for rank in range(self._job.program.n_ranks))

    def outcome(self) -> Outcome:
        """What the run came to; the caller's copy of the model then has it too."""
        model, done = self._bench.model, self._done.values()
        gradients: dict[str, torch.Tensor] = {}
        outputs: dict[int, torch.Tensor] = {}
        for one in done:
            for stage, state in one.states.items():
                model.stages[stage].load_state_dict(state)
            gradients.update(one.gradients)
            outputs.update(one.outputs)
        losses = [self._loss_of(step) for step in range(self._job.n_steps)] if self._job.loss is not None else []
        named = {name: gradients[name] for name in model.parameters if name in gradients}
        output = torch.cat([outputs[m] for m in sorted(outputs)]) if outputs else None
        return Outcome(losses, named, dict(model.parameters), output)

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self) -> None:
        n_ranks = self._job.program.n_ranks
        while self._step < self._job.n_steps and len(self._begun[self._step]) == n_ranks:
            if not self._is_started:
                self._start()
            for rank, rows in self._waiting.pop(self._step, ()):
                for row in rows:
                    self._tell(rank, row)
            if len(self._losses[self._step]) < n_ranks:
                return
            self._finish()
            self._step, self._is_started = self._step + 1, False

    def _start(self) -> None:
        self._is_started = True
        first = min(self._begun[self._step].values())
        self._sent.clear()
        self._received.clear()
        if self._step == WARM_UP:
            return
        if not self._step:
            self._zero = first
        self._hooks.step_start(StepStart(self._step, first - self._zero))

    def _finish(self) -> None:
        if self._step == WARM_UP:
            links = Costs(latency=latency_of(self._messages))
            self._hooks.calibrated(Calibrated(costs_of(self._job.program, self._bench, self._probe, links)))
        else:
            self._hooks.step_end(StepEnd(self._step, self._loss_of(self._step)))

    def _loss_of(self, step: int) -> float:
        last = int(self._job.program.placement.routes[0][-1])
        return self._losses[step][last]

    def _tell(self, rank: int, row: Any) -> None:
        if isinstance(row, Parcel):
            self._match(rank, row)
        elif self._step == WARM_UP:
            self._warmed(row)
        elif isinstance(row, SlotEnd):
            self._hooks.slot_start(SlotStart(row.step, rank, row.slot, row.actions))
            begun, ended = row.begun - self._zero, row.ended - self._zero
            self._hooks.slot_end(dataclasses.replace(row, begun=begun, ended=ended))
        elif isinstance(row, Updated):
            self._hooks.updated(dataclasses.replace(row, begun=row.begun - self._zero))
        elif isinstance(row, Memory):
            self._hooks.memory(row)

    def _warmed(self, row: Any) -> None:
        if isinstance(row, SlotEnd):
            self._probe.slot_end(row)
        elif isinstance(row, Memory):
            self._probe.memory(row)

    def _match(self, rank: int, parcel: Parcel) -> None:
        """Put a message's two ends together."""
        if math.isnan(parcel.got):
            key = parcel.kind, parcel.stage, parcel.micro_batch
            self._sent[key] = rank, parcel
        else:
            kind, offset = _SENT_AS[parcel.kind]
            key = kind, parcel.stage + offset, parcel.micro_batch
            self._received[key] = rank, parcel
        if key in self._sent and key in self._received:
            self._message(*self._sent.pop(key), *self._received.pop(key))

    def _message(self, source: int, sent: Parcel, target: int, received: Parcel) -> None:
        was_seen = seen(received.got - received.wanted)
        left, wanted = sent.posted - self._zero, received.wanted - self._zero
        arrived = max((received.got if was_seen else received.wanted) - self._zero, left)
        action = Action(sent.kind, sent.stage, sent.micro_batch, peer=target)
        message = Message(self._step, action, source, sent.bytes, left, wanted, arrived, was_seen)
        if self._step == WARM_UP:
            self._messages.append(message)
            return
        self._hooks.message(message)
        if self._hooks.hears("transfer"):
            self._hooks.transfer(Transfer(self._step, action, source, target, sent.bytes, arrived - left))
