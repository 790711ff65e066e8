"""A run as a value: simulated, executed, recorded or imported, all the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.core import metrics
from explorer.core.clocks import ClockOffset
from explorer.core.costs import Costs
from explorer.core.events import Events, MemoryChanges
from explorer.core.marks import Mark
from explorer.core.meetings import MessageRule
from explorer.core.program import Program
from explorer.core.trace_checks import check_tables
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

FORMAT_VERSION = 1
_MOST_NAMED = 8  # steps that a message lists


@dataclass(frozen=True, eq=False)
class Trace:
    """What a pipeline did, when.

    Measures are per step; a trace of several steps gives their median without the first.

    Attributes:
        events: what happened.
        program: the orders that ran.
        memory: changes of memory; empty where unknown.
        costs: that it was simulated with, or None.
        clock: what `start` and `end` were read from: "simulated", "virtual" (measured durations laid on a clock a
            rank, links modelled) or "real".
        version: of this format.
        clock_offsets: of each rank, where their clocks are not one: what was taken off `start` and `end`, and how
            surely it is known; None where they are one.
        marks: what else is to be said of single moments, such as faults that were put there.
        messages: by which rule its sends and receives met, where that was said; None: they were on their way as soon as
            they were sent, or nobody knows.
    """

    events: Events
    program: Program
    memory: MemoryChanges = field(default_factory=lambda: MemoryChanges.of(step=()))
    costs: Costs | None = None
    clock: str = "simulated"
    version: int = FORMAT_VERSION
    clock_offsets: tuple[ClockOffset, ...] | None = None
    marks: tuple[Mark, ...] = ()
    messages: MessageRule | None = None

    def __post_init__(self) -> None:
        """Refuse times that no clock shows, and ranks that the program has not: every measure would be nonsense.

        Raises:
            InputError: naming the column and the first such row.
        """
        check_tables(self.events, self.memory, self.program)

    @property
    def n_ranks(self) -> int:
        """Number of pipeline ranks."""
        return self.program.n_ranks

    @cached_property
    def steps(self) -> list[int]:
        """Numbers of the training steps it holds."""
        step = self.events.step
        if len(step) and step.min() == step.max():  # as of every simulated trace: without sorting
            return [int(step[0])]
        return [int(number) for number in np.unique(step)]

    def step(self, number: int) -> Trace:
        """The one step `number` of it.

        Raises:
            InputError: if it holds no such step.
        """
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number not in self.steps:
            there = ", ".join(map(str, self.steps[:_MOST_NAMED])) or "none"
            more = f" … {self.steps[-1]}" if len(self.steps) > _MOST_NAMED else ""
            raise InputError(
                f"a step is one that the trace holds; got {str(number)[:40]}; the steps there are: {there}{more}",
                argument="number",
                legal=tuple(sorted(self.steps, key=lambda step: abs(step - number))[:2])
                if isinstance(number, (int, np.integer))
                else tuple(self.steps[:1]),
            )
        return Trace(
            self.events.take(self.events.step == number),
            self.program,
            self.memory.take(self.memory.step == number),
            self.costs,
            self.clock,
            self.version,
            self.clock_offsets,
            tuple(mark for mark in self.marks if mark.step == number),
            self.messages,
        )

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end over all ranks."""
        return float(_median([times.makespan for times in self._times]))

    @property
    def bubble_ratio(self) -> float:
        """Idle time as a share of ranks × makespan."""
        return float(_median([times.bubble_ratio for times in self._times]))

    @property
    def bubble_overhead(self) -> float:
        """Idle time over busy time."""
        return float(_median([times.bubble_overhead for times in self._times]))

    @property
    def idle_per_rank(self) -> npt.NDArray[np.float64]:
        """(n_ranks,) seconds of the makespan in which each rank does not compute."""
        return np.asarray(_median([times.idle for times in self._times]))

    @property
    def span_per_rank(self) -> npt.NDArray[np.float64]:
        """(n_ranks,) seconds from each rank's own first start to its own last end."""
        return np.asarray(_median([times.span for times in self._times]))

    @cached_property
    def peak_in_flight(self) -> npt.NDArray[np.int64]:
        """(n_ranks,) the most (stage, micro-batch) pairs each rank holds at once."""
        counts = [metrics.peak_in_flight(events, self.n_ranks) for events in self._measured_steps]
        return np.asarray(_median(counts), np.int64)

    @cached_property
    def peak_segments(self) -> npt.NDArray[np.int64]:
        """(n_ranks,) the most (stage, micro-batch, segment) triples each rank holds at once."""
        counts = [metrics.peak_in_flight(events, self.n_ranks, each_segment=True) for events in self._measured_steps]
        return np.asarray(_median(counts), np.int64)

    def summary(self) -> dict[str, Any]:
        """The measures above by name, as plain numbers and lists."""
        return {
            "makespan": self.makespan,
            "bubble_ratio": self.bubble_ratio,
            "bubble_overhead": self.bubble_overhead,
            "idle_per_rank": self.idle_per_rank.tolist(),
            "peak_in_flight": self.peak_in_flight.tolist(),
        }

    def to_frame(self) -> pd.DataFrame:
        """The events as a DataFrame, with kind, stream and origin spelled out."""
        return self.events.to_frame()

    def __repr__(self) -> str:
        return (
            f"Trace({self.program.name!r}, clock={self.clock!r}, n_ranks={self.n_ranks}, n_events={len(self.events)}, "
            f"makespan={self.makespan:.6g}, bubble_ratio={self.bubble_ratio:.4f})"
        )

    @cached_property
    def _measured_steps(self) -> list[Events]:
        """The events of each step that counts: all but the first, unless there is but one."""
        if len(self.steps) <= 1:
            return [self.events]
        return [self.events.take(self.events.step == step) for step in self.steps[1:]]

    @cached_property
    def _times(self) -> list[metrics.RankTimes]:
        return [metrics.rank_times(events, self.n_ranks) for events in self._measured_steps]


def _median(values: list[Any]) -> Any:
    """Over steps; the app asks often, and mostly of a single one."""
    return values[0] if len(values) == 1 else np.median(values, axis=0)


def check_trace(value: object) -> Trace:
    """`value`, if it is a Trace.

    Raises:
        InputError: if it is anything else.
    """
    if isinstance(value, Trace):
        return value
    if isinstance(value, Program):
        advice = "make one with explorer.simulate(program)"
    else:
        holds = isinstance(getattr(value, "trace", None), Trace)
        advice = "give its .trace" if holds else "make one with explorer.simulate or explorer.execute"
    raise InputError(f"this needs a Trace; got {type(value).__name__}; {advice}", argument="trace")
