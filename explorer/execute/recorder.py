"""The recorder: a hook that keeps what a run tells, and gives it as a Trace at any time."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from explorer.core import Category, Costs, Events, Graph, MemoryChanges, Origin, Program, Trace, graph_of
from explorer.core.clocks import SAME_CLOCK, ClockOffset
from explorer.errors import RunError
from explorer.execute.events import Calibrated, Memory, Message, RunStart, SlotEnd, Started, StepEnd, StepStart, Updated
from explorer.execute.faults import DelayMessage, Injected
from explorer.execute.hooks import Hook
from explorer.execute.marking import marks_of
from explorer.execute.real_clock import lay_real_step
from explorer.execute.rows import Rows
from explorer.execute.typical import Lags, lags, refit
from explorer.execute.virtual_clock import Forecast, LaidStep, Step, lay_step

_MOST_STEPS = 16  # that a forecast is made from
_NONE = Lags(np.zeros(0), np.zeros(0))


class Recorder(Hook):
    """Keeps slot durations, memory and losses in arrays, and lays them on the ranks' virtual clocks when asked.

    Pass your own to `execute(..., hooks=[recorder])` to follow a run from another thread: every reader here may be
    called at any time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._program: Program | None = None
        self._clear()

    def _clear(self) -> None:
        self._n_steps = 0
        self._clock = "virtual"
        self._started: Started | None = None
        self._costs: Costs | None = None
        self._step: Step | None = None
        self._laid: list[LaidStep] = []
        self._memory = Rows(8)
        self._losses: list[float] = []
        self._recording: list[float] = []
        self._done = 0
        self._injected: list[Injected] = []
        self._offsets: tuple[ClockOffset, ...] | None = None
        self._forecast: Forecast | None = None
        self._seconds: deque[npt.NDArray[np.float64]] = deque(maxlen=_MOST_STEPS)
        self._lags: deque[Lags] = deque(maxlen=_MOST_STEPS)

    # ── what the run tells ──────────────────────────────────────────────────────────────────────────────────────

    def run_start(self, event: RunStart) -> None:
        """Forget the run before."""
        with self._lock:
            self._clear()
            self._program, self._n_steps, self._clock = event.program, event.n_steps, event.clock

    def started(self, event: Started) -> None:
        """Keep how the ranks' processes came to be."""
        self._started = event

    def calibrated(self, event: Calibrated) -> None:
        """Keep the link model and what is to be expected."""
        with self._lock:
            self._costs = event.costs
            self._forecast = Forecast(self._graph, event.costs)

    def step_start(self, event: StepStart) -> None:
        """Begin where the step before ended."""
        with self._lock:
            follows = self._laid[-1].over if self._laid else 0.0
            begin = event.begun if self._clock == "real" else follows
            self._step = Step.empty(event.step, begin, self._graph.program.n_slots)

    def slot_end(self, event: SlotEnd) -> None:
        """Keep its duration."""
        with self._lock:
            if self._step is not None:
                self._step.seconds[event.slot] = event.seconds
                self._step.begun[event.slot], self._step.ended[event.slot] = event.begun, event.ended
                if event.moments:
                    self._step.moments[event.slot] = event.moments
                self._done += 1

    def updated(self, event: Updated) -> None:
        """Keep the update's duration."""
        with self._lock:
            if self._step is not None:
                self._step.updates.append((event.rank, event.stage, event.seconds, event.begun))

    def aligned(self, offsets: tuple[ClockOffset, ...]) -> None:
        """Keep how far the clocks were apart, unless they are one."""
        self._offsets = None if set(offsets) == {SAME_CLOCK} else offsets

    def injected(self, event: Injected) -> None:
        """Keep where; a message that is late lies so on a virtual clock."""
        with self._lock:
            self._injected.append(event)
            if self._step is not None and isinstance(event.fault, DelayMessage):
                late, action = self._step.late, event.fault.action
                late[action] = late.get(action, 0.0) + event.fault.seconds

    def message(self, event: Message) -> None:
        """Keep when it was where."""
        with self._lock:
            if self._step is not None:
                self._step.messages.append(event)

    def memory(self, event: Memory) -> None:
        """Keep the change."""
        row = (event.step, event.slot, event.at_end, event.rank, event.category)
        with self._lock:
            self._memory.append((*row, event.stage, event.micro_batch, event.delta))

    def step_end(self, event: StepEnd) -> None:
        """Keep the loss, and lay the step down for good."""
        with self._lock:
            if self._step is not None:
                self._laid.append(_lay(self._clock, self._graph, self._links, self._step))
                self._expect(self._laid[-1], self._step.seconds)
                self._step = None
            self._losses.append(event.loss)
            self._recording.append(event.recording)

    def _expect(self, laid: LaidStep, seconds: npt.NDArray[np.float64]) -> None:
        """Forecast from what the last steps took; the first of several, which pays for much, only until the second."""
        if len(self._laid) == 2:
            self._seconds.clear()
            self._lags.clear()
        self._seconds.append(seconds)
        if self._clock == "real":  # on virtual clocks nothing is late
            self._lags.append(lags(self._graph, laid.start, laid.end))
        if self._costs is not None:
            late = Lags(*map(np.concatenate, zip(*self._lags, strict=True))) if self._lags else _NONE
            costs = refit(self._costs, self._graph.program, np.stack(self._seconds), late)
            kept = _optimizer_bytes(self._memory.copy(), self._graph.program.n_stages)
            self._forecast = Forecast(self._graph, replace(costs, optimizer_bytes=kept))

    # ── what others ask ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def progress(self) -> float:
        """How much of the run is done, from 0 to 1, counted in slots."""
        if self._program is None:
            return 0.0
        return min(self._done / max(self._n_steps * self._program.n_slots, 1), 1.0)

    @property
    def recording(self) -> float:
        """The share of a step that the busiest rank spent on telling of it, the median without the first of several.

        NaN in the kernel, where the time between operations counts for nothing.
        """
        with self._lock:
            shares = self._recording[1:] or self._recording
        return float(np.median(shares)) if shares else float("nan")

    @property
    def start(self) -> Started | None:
        """How the ranks' processes came to be; None in the kernel, or before they are there."""
        return self._started

    @property
    def step_progress(self) -> tuple[int, float]:
        """The step that runs, or ran last, and how much of it is done, from 0 to 1, counted in slots."""
        with self._lock:
            if self._step is None or self._program is None:
                return max(len(self._losses) - 1, 0), float(bool(self._losses))
            done = np.count_nonzero(~np.isnan(self._step.seconds))
            return self._step.number, done / max(self._program.n_slots, 1)

    @property
    def losses(self) -> list[float]:
        """The loss of each step that is over."""
        with self._lock:
            return list(self._losses)

    @property
    def costs(self) -> Costs | None:
        """What each stage's actions cost, as measured by the warm-up; None before its end."""
        return self._costs

    def trace(self) -> Trace:
        """All that has run so far; safe to call from another thread.

        Raises:
            RunError: before a run has begun.
        """
        with self._lock:
            graph, links, clock = self._graph, self._links, self._clock
            laid = list(self._laid)
            step = self._step.snapshot() if self._step else None
            memory, injected = self._memory.copy(), list(self._injected)
        if step is not None:
            laid.append(_lay(clock, graph, links, step))
        events = Events.concatenate(*(one.events for one in laid)) if laid else Events.of(step=())
        changes = _changes(memory, laid, graph.program.n_slots)
        marks = marks_of(injected, laid, graph.program, clock)
        return Trace(events, graph.program, changes, links, clock, clock_offsets=self._offsets, marks=marks)

    def predicted(self) -> Trace | None:
        """The simulated trace of the same program with the typical costs so far; None before the warm-up's end.

        Those are the last steps' costs, or the warm-up's while no step is over.

        Each step begins where the measured one began or, where that is still to come, is expected to.
        """
        with self._lock:
            forecast, n_steps = self._forecast, self._n_steps
            laid = list(self._laid)
            running = self._step.begin if self._step else None
        if forecast is None:
            return None
        begins = [one.begin for one in laid] + ([running] if running is not None else [])
        begins = begins or [0.0]
        updates = laid[-1].over - float(np.nanmax(laid[-1].end)) if laid else 0.0
        while len(begins) < n_steps:
            over = laid[-1].over if len(begins) == len(laid) else begins[-1] + forecast.makespan + updates
            begins.append(over)
        return forecast.trace(begins)

    @property
    def _graph(self) -> Graph:
        if self._program is None:
            raise RunError("a recorder has a trace once its run has begun; pass it in hooks=[…] of execute")
        return graph_of(self._program)

    @property
    def _links(self) -> Costs:
        return self._costs or Costs()


def _lay(clock: str, graph: Graph, links: Costs, step: Step) -> LaidStep:
    """A step on the kind of clock that its run has."""
    return lay_real_step(graph, links, step) if clock == "real" else lay_step(graph, links, step)


def _optimizer_bytes(rows: npt.NDArray[np.int64], n_stages: int) -> npt.NDArray[np.float64]:
    """(n_stages,) what the optimizers kept by the end of the last step; before their first update they keep nothing."""
    last = rows[(rows[:, 0] == rows[:, 0].max(initial=0)) & (rows[:, 4] == Category.OPTIMIZER)]
    return np.asarray(np.bincount(last[:, 5], last[:, 7], n_stages), float)


def _changes(rows: npt.NDArray[np.int64], laid: list[LaidStep], n_slots: int) -> MemoryChanges:
    """The memory rows at the times of the slots they belong to; those of unfinished slots are left out."""
    if not len(rows):
        return MemoryChanges.of(step=())
    # each step's times as a column: its begin, the starts, the ends, and when it is over
    times = np.stack([np.concatenate([[one.begin], one.start, one.end, [one.over]]) for one in laid])
    step, slot, at_end = rows[:, 0], rows[:, 1], rows[:, 2]
    place = np.where(slot < 0, 0, np.where(slot >= n_slots, 2 * n_slots + 1, 1 + slot + at_end * n_slots))
    time = times[step, place]
    known = ~np.isnan(time)
    rows, time = rows[known], time[known]
    return MemoryChanges.of(
        step=rows[:, 0],
        time=time,
        rank=rows[:, 3],
        category=rows[:, 4],
        stage=rows[:, 5],
        micro_batch=rows[:, 6],
        delta=rows[:, 7],
        # memory is followed in the first step and taken as the same in the others
        origin=np.where(rows[:, 0] == rows[0, 0], Origin.MEASURED, Origin.MODELLED),
    )
