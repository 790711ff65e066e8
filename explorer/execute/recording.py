"""Recording somebody else's run: a schedule of torch.distributed.pipelining in the user's own training script."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from explorer.core import Kind
from explorer.core.clocks import ClockOffset
from explorer.errors import InputError
from explorer.execute.clocks import default_store, find_offset
from explorer.execute.optimizer_taps import OptimizerTaps, Update
from explorer.execute.record_log import Log, process_token
from explorer.execute.record_memory import StepMemory
from explorer.execute.stages import first_line
from explorer.execute.stamps import Clock, clock_name, clock_of
from explorer.execute.taps import Done, Parcel, Stamp, Taps


@contextlib.contextmanager
def record(path: str | os.PathLike[str], schedule: Any, *, memory: bool = True) -> Iterator[Path]:
    """Record every step that a schedule of torch.distributed.pipelining makes within it, on every rank.

        with ex.record("traces/", schedule):
            for inputs, targets in batches:
                schedule.step(inputs, target=targets)

    in the script that `torchrun` starts; afterwards, anywhere, ``ex.load("traces/")`` is the run as a Trace. Model,
    schedule and losses stay as they are. Each rank appends to a file of its own after every step, so that a crash
    loses at most the step in flight; a step that raises is kept apart, with its error.

    Recorded are F, B, I, W and the gradient reduction with stage and micro-batch, sends and receives with the time
    they were waited for, and in the first step that trains the memory kept for backwards. A loss belongs to the forward
    of the last stage. An update by a torch optimizer is a U of the stages whose parameters it holds, and belongs to
    the step that trained before it. On CUDA, times are those of events on the stream.

    Args:
        path: of a folder. A recording there by an earlier process is replaced; one by this process is continued.
        schedule: the object whose `step` is called: ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B and all
            others of torch ≥ 2.12, custom orders loaded from CSV included.
        memory: whether to follow memory; the one step in which it is followed takes longer.

    Yields:
        The file of this rank.

    Raises:
        InputError: if `schedule` is none of torch's, or the folder cannot be written.
        EngineError: if this torch lacks what is listened to.
    """
    stages = _stages_of(schedule)
    first = stages[0]
    group = first.group
    folder = _folder(path)
    distributed: Any = torch.distributed
    ranks = distributed.get_process_group_ranks(group)
    log = Log(folder / f"rank-{distributed.get_rank():05d}.jsonl", _header(schedule, stages, ranks))
    recording = Recording(log, clock_of(first.device), schedule, stages, follow_memory=memory)
    taps = Taps(schedule, stages, recording)
    taps.check()
    recording.compare(find_offset(group, first.device))
    with taps.listening(), OptimizerTaps(stages, recording).listening():
        try:
            yield log.file
        finally:
            recording.close()
    with contextlib.suppress(RuntimeError, ValueError, KeyError):  # of a group that the user has ended meanwhile
        if distributed.is_initialized():
            recording.compare(find_offset(group, first.device))  # once more: clocks drift


def _stages_of(schedule: Any) -> list[Any]:
    from torch.distributed.pipelining import schedules

    base = getattr(schedules, "_PipelineSchedule", ())
    if not isinstance(schedule, base) or isinstance(schedule, type):
        came = schedule.__name__ if isinstance(schedule, type) else type(schedule).__name__
        raise InputError(
            f"record listens to a schedule object of torch.distributed.pipelining, the one whose step() is called; got "
            f"{came}; try record(path, schedule)",
            argument="schedule",
        )
    return list(schedule._stages) if hasattr(schedule, "_stages") else [schedule._stage]  # noqa: SLF001


def _folder(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InputError(f"a recording has a folder; got {str(path)[:40]!r}; try 'traces'", argument="path")
    return Path(path)


def _header(schedule: Any, stages: Sequence[Any], ranks: list[int]) -> dict[str, Any]:
    distributed: Any = torch.distributed
    rank = distributed.get_rank()
    backend = str(distributed.get_backend())
    return {
        "format": "recording",
        "version": 1,
        "unit": "ns",
        "schedule": type(schedule).__name__,
        "n_micro_batches": schedule._n_microbatches,  # noqa: SLF001
        "n_stages": stages[0].num_stages,
        "stages": [stage.stage_index for stage in stages],
        "rank": ranks.index(rank),
        "n_ranks": len(ranks),
        "group": ranks,
        "run": _run_token(),
        "process": process_token(),
        "host": socket.gethostname(),
        "clock": clock_name(),
        "device": str(stages[0].device),
        "torch": str(torch.__version__),
        "distributedInfo": {"backend": backend, "rank": rank, "world_size": distributed.get_world_size()},
    }


def _run_token() -> str:
    """One word for all processes of a job: that of the first who asks."""
    store = default_store()
    try:
        return "" if store is None else store.compare_set("explorer_run", "", process_token()).decode()
    except (RuntimeError, NotImplementedError):  # a store that cannot compare
        return ""


class Recording:
    """Keeps what a step tells as tuples, and writes it down when the step is over.

    Args:
        log: to write to.
        clock: stamps.
        schedule: that is recorded.
        stages: of it on this rank.
        follow_memory: in the first step that trains.
    """

    def __init__(self, log: Log, clock: Clock, schedule: Any, stages: Sequence[Any], *, follow_memory: bool) -> None:
        self._log, self._clock, self._schedule, self._stages = log, clock, schedule, stages
        self._n_steps = log.n_steps
        self._wants_memory = follow_memory and not log.n_steps
        self._memory: StepMemory | None = None
        self._unwritten: list[_Step | _Update] = []
        self._trained: int | None = None
        self._step: _Step | None = None
        self.now: Callable[[], Stamp] = clock.now

    def compare(self, offset: ClockOffset | None) -> None:
        """Write down how far this rank's clock is ahead of rank 0's."""
        (time,) = self._clock.nanoseconds([self._clock.now()])
        known = None if offset is None else {"time": time, **offset._asdict()}
        self._log.append({"clock": known})

    # ── what the taps tell ──────────────────────────────────────────────────────────────────────────────────────

    def began(self, kind: Kind, stage: Any, micro_batch: int) -> contextlib.AbstractContextManager[Any]:
        """An action begins."""
        return _NOTHING if self._memory is None else self._memory.running(kind, stage, micro_batch)

    def did(self, done: Done, stage: Any) -> None:
        """An action has run."""
        if self._step is None:
            return
        self._step.actions.append(done)
        if self._memory is not None:
            self._memory.ran(done.kind, stage, done.micro_batch, len(self._step.actions) - 1)

    def loss_ended(self, stage: int, micro_batch: int, end: Stamp) -> None:
        """The forward it belongs to ends with it."""
        actions = self._step.actions if self._step else []
        for place in range(len(actions) - 1, -1, -1):
            if actions[place][:3] == (Kind.F, stage, micro_batch):
                actions[place] = actions[place]._replace(end=end)
                return

    def posted(self, parcel: Parcel) -> None:
        """A message has been given to the transport."""
        if self._step is not None:
            self._step.parcels.append(parcel)

    @property
    def trained(self) -> int | None:
        """The step whose gradients are there; None within a step, and before the first."""
        return self._trained if self._step is None else None

    def updated(self, update: Update) -> None:
        """An optimizer has taken its step."""
        self._unwritten.append(_Update(update))
        self._write(wait=False)

    def stepped(self, step: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a whole step, and write it down."""
        trains = bool(self._schedule._has_backward)  # noqa: SLF001
        if self._wants_memory and trains:
            self._memory = StepMemory(self._stages, self._stages[0].group_rank, self._stages[0].num_stages)
        self._step = _Step(self._n_steps, trains, self._clock.now())
        error: str | None = "interrupted"
        try:
            result = step(*arguments, **named)
            error = None
        except BaseException as raised:
            error = first_line(raised.__cause__ or raised)[:500]  # torch words what a layer raised anew
            raise
        finally:
            self._finish(error)
        return result

    def _finish(self, error: str | None) -> None:
        step, self._step = self._step, None
        memory, self._memory = self._memory, None
        if step is None:
            return
        step.end, step.error = self._clock.now(), error
        if memory is not None and error is None:
            memory.drain(len(step.actions) - 1)
            step.memory = memory.added_up()
            self._wants_memory = False
        if step.trains:
            self._trained = step.number if error is None else None
        self._n_steps += 1
        self._unwritten.append(step)
        self._write(wait=False)

    def close(self) -> None:
        """Write down what a device had not come to yet."""
        self._write(wait=True)

    def _write(self, *, wait: bool) -> None:
        while self._unwritten and (wait or self._clock.ready(self._unwritten[0].end)):
            self._log.append(self._unwritten.pop(0).line(self._clock))


_NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


class _Step:
    """What one step has told so far."""

    def __init__(self, number: int, trains: bool, begin: Stamp) -> None:
        self.number, self.trains, self.begin = number, trains, begin
        self.end: Stamp = begin
        self.error: str | None = None
        self.actions: list[Done] = []
        self.parcels: list[Parcel] = []
        self.memory: Sequence[tuple[Any, ...]] = ()

    def line(self, clock: Clock) -> dict[str, Any]:
        """As it is written down."""
        done, parcels = self.actions, self.parcels
        stamps = [self.begin, *(s for one in done for s in one[3:]), self.end]
        times = iter(clock.nanoseconds(stamps))
        begin = next(times)
        spans = [(next(times) - begin, next(times) - begin) for _ in done]
        end = next(times)
        moments = _moments(parcels, clock, begin)
        return {
            "step": self.number,
            "trains": self.trains,
            "begin": begin,
            "end": end,
            "error": self.error,
            "actions": {
                "kind": [one.kind.name for one in done],
                "stage": [one.stage for one in done],
                "micro_batch": [one.micro_batch for one in done],
                "start": [start for start, _ in spans],
                "end": [end for _, end in spans],
            },
            "messages": {
                "kind": [one.kind.name for one in parcels],
                **{name: [getattr(one, name) for one in parcels] for name in ("stage", "micro_batch", "peer", "bytes")},
                **{name: [row[place] for row in moments] for place, name in enumerate(("posted", "wanted", "got"))},
            },
            "memory": {
                name: [row[place] for row in self.memory]
                for place, name in enumerate(("action", "at_end", "category", "stage", "micro_batch", "delta"))
            },
        }


class _Update:
    """What an optimizer's step has told."""

    def __init__(self, update: Update) -> None:
        self._update, self.end = update, update.end

    def line(self, clock: Clock) -> dict[str, Any]:
        """As it is written down."""
        step, *stamps, shares = self._update
        begin, end = clock.nanoseconds(stamps)
        told = {"step": step, "begin": begin, "end": end, "stage": list(shares), "bytes": list(shares.values())}
        return {"update": told}


def _moments(parcels: Sequence[Parcel], clock: Clock, begin: int) -> list[tuple[int, int | None, int | None]]:
    """When each was posted, wanted and got, counted from `begin`; None where that has not been."""
    stamps = [stamp for one in parcels for stamp in (one.posted, one.wanted, one.got) if stamp is not None]
    times = iter(clock.nanoseconds(stamps))

    def next_of(stamp: Stamp) -> int | None:
        return None if stamp is None else next(times) - begin

    return [(next(times) - begin, next_of(one.wanted), next_of(one.got)) for one in parcels]
