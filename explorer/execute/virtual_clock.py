"""Measured durations on a clock a rank: where each slot lies is worked out by the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Events, Graph, Kind, MemoryChanges, Origin, Trace
from explorer.execute.events import Message
from explorer.simulate import lay_out, simulate, time_slots

Floats = npt.NDArray[np.float64]
_Table = TypeVar("_Table", Events, MemoryChanges)


@dataclass
class Step:
    """What a step took so far.

    Attributes:
        number: of the step, from 0.
        begin: seconds at which it begins on all ranks.
        seconds: (n_slots,) float64 that each slot took; NaN where it has not run.
        begun: (n_slots,) float64 seconds at which each began on a real clock; NaN where it has not run.
        ended: (n_slots,) float64 seconds at which each ended on it.
        moments: slot → begin and end of each of its actions on it, where it holds several.
        updates: rank, stage, seconds and, on a real clock, beginning of each optimizer update.
        messages: between processes.
        late: action → seconds that what it sends is late, on a virtual clock.
    """

    number: int
    begin: float
    seconds: Floats
    begun: Floats
    ended: Floats
    moments: dict[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    updates: list[tuple[int, int, float, float]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    late: dict[str, float] = field(default_factory=dict)

    @classmethod
    def empty(cls, number: int, begin: float, n_slots: int) -> Step:
        """A step in which nothing has run."""
        seconds, begun, ended = np.full((3, n_slots), np.nan)
        return cls(number, begin, seconds, begun, ended)

    def snapshot(self) -> Step:
        """A copy that stays as it is."""
        times = self.seconds.copy(), self.begun.copy(), self.ended.copy()
        lists = dict(self.moments), list(self.updates), list(self.messages)
        return Step(self.number, self.begin, *times, *lists, late=dict(self.late))


@dataclass(frozen=True, eq=False)
class LaidStep:
    """A step on the ranks' clocks.

    Attributes:
        events: of what has run.
        start: (n_slots,) float64 seconds; NaN where a slot has not run.
        end: (n_slots,) float64 seconds; NaN where a slot has not run.
        begin: seconds at which it begins on all ranks.
        over: seconds at which the last rank has ended its optimizer update.
    """

    events: Events
    start: Floats
    end: Floats
    begin: float
    over: float


def lay_step(graph: Graph, links: Costs, step: Step) -> LaidStep:
    """Put a step, also an unfinished one, on the ranks' clocks.

    A slot lies as early as its rank and what it waits for allow, messages taking what `links` says. Slots must have
    run in an order of dependency, so that what has run never waits for what has not.
    """
    done = ~np.isnan(step.seconds)
    links = replace(links, message_delays=step.late) if step.late else links
    start, end, moved = time_slots(graph, links, np.where(done, step.seconds, 0.0), ran=done)
    events = lay_out(graph, links, start, end, messages=moved, step=step.number, measured=True)
    slot = graph.program.rank_offsets[events.rank] + events.slot
    events = shift(events.take(done[slot]), step.begin)
    start, end = (np.where(done, time + step.begin, np.nan) for time in (start, end))
    finish = float(np.nanmax(end)) if done.any() else step.begin
    updates, over = _updates(step, finish)
    return LaidStep(Events.concatenate(events, updates), start, end, step.begin, over)


def shift(events: Events, seconds: float) -> Events:
    """The same events, `seconds` later."""
    return replace(events, start=events.start + seconds, end=events.end + seconds)


def _updates(step: Step, finish: float) -> tuple[Events, float]:
    """U of each stage, a rank's one behind the other, from the step's last end on; and when the last is over."""
    if not step.updates:
        return Events.of(step=()), finish
    rank, stage, seconds, _ = (np.array(column) for column in zip(*step.updates, strict=True))
    end = np.empty(len(rank))
    for r in np.unique(rank):
        rows = rank == r
        end[rows] = finish + np.cumsum(seconds[rows])
    events = Events.of(
        step=step.number,
        rank=rank,
        stage=stage,
        kind=Kind.U,
        start=end - seconds,
        end=end,
        origin=Origin.MEASURED,
    )
    return events, float(end.max())


class Forecast:
    """What the simulator expects of a run, from what its warm-up measured."""

    def __init__(self, graph: Graph, costs: Costs) -> None:
        self._step = simulate(graph.program, costs)
        self.makespan = self._step.makespan

    def trace(self, begins: list[float]) -> Trace:
        """The expected trace of as many steps as there are `begins`, each begun there, in seconds."""
        at = np.array(begins)
        events, memory = _repeat(self._step.events, at), _repeat(self._step.memory, at)
        return Trace(events, self._step.program, memory, costs=self._step.costs)


def _repeat(step: _Table, begins: Floats) -> _Table:
    """A step's rows once for each of `begins`, as many seconds later."""
    columns = {name: np.tile(column, len(begins)) for name, column in step.columns().items()}
    later = np.repeat(begins, len(step))
    for name in ("start", "end", "time"):
        if name in columns:
            columns[name] = columns[name] + later
    columns["step"] = np.repeat(np.arange(len(begins), dtype=np.int32), len(step))
    return type(step)(**columns)
