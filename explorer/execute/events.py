"""What can happen in a run, as hooks are told of it: plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from explorer.core import Action, Category, Costs, Program


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run begins.

    Attributes:
        program: that will run.
        n_steps: how often.
        backend: where it runs, "kernel" or "processes".
        clock: what its trace's times will be read from, "virtual" or, in processes, "real".
    """

    program: Program
    n_steps: int
    backend: str
    clock: str


@dataclass(frozen=True, slots=True)
class Started:
    """The ranks' processes are at work.

    Attributes:
        n_ranks: that the run has.
        n_forked: of their processes that had to be made for it; the others were there from before.
        seconds: from the call of execute to the first report.
        importing: of these, seconds that torch had to be waited for where processes are forked from.
    """

    n_ranks: int
    n_forked: int
    seconds: float
    importing: float

    @property
    def is_warm(self) -> bool:
        """Whether all processes were there from before."""
        return not self.n_forked and not self.importing

    def __str__(self) -> str:
        if self.is_warm:
            return f"started warm in {self.seconds:.2f} s: its processes were there from before"
        reasons = [f"{self.n_forked} of {self.n_ranks} processes were new"] if self.n_forked else []
        if self.importing:
            reasons.append(f"torch had to be imported for them first, {self.importing:.1f} s of it")
        return f"started cold in {self.seconds:.2f} s: {' and '.join(reasons)}"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The hidden warm-up is over: what one action of each stage costs on this machine, and the link model."""

    costs: Costs


@dataclass(frozen=True, slots=True)
class StepStart:
    """A training step begins.

    Attributes:
        step: of the run, from 0.
        begun: seconds on the run's real clock; NaN on virtual ones.
    """

    step: int
    begun: float = math.nan


@dataclass(frozen=True, slots=True)
class SlotStart:
    """A slot is about to run.

    Attributes:
        step: of the run, from 0.
        rank: the slot's rank.
        slot: its number, counted over all ranks as in the program's arrays.
        actions: what it holds.
    """

    step: int
    rank: int
    slot: int
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class SlotEnd:
    """A slot has run.

    Attributes:
        step: of the run, from 0.
        rank: the slot's rank.
        slot: its number, counted over all ranks as in the program's arrays.
        actions: what it held.
        seconds: its actions took.
        begun: seconds at which it began, on the clock that operations are timed with.
        ended: seconds at which it ended on that clock.
        moments: begin and end of each of its actions on that clock, where it holds several.
    """

    step: int
    rank: int
    slot: int
    actions: tuple[Action, ...]
    seconds: float
    begun: float = math.nan
    ended: float = math.nan
    moments: tuple[tuple[float, float], ...] = ()

    def earlier(self, seconds: float) -> SlotEnd:
        """The same on a clock that began so much later."""
        moments = tuple((begun - seconds, ended - seconds) for begun, ended in self.moments)
        return replace(self, begun=self.begun - seconds, ended=self.ended - seconds, moments=moments)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Something goes from one rank to another; in the kernel it is handed over at once and its time is modelled.

    Attributes:
        step: of the run, from 0.
        action: that made what travels.
        source: rank it leaves.
        target: rank it goes to.
        bytes: how many travel.
        seconds: on the way, by the link model.
    """

    step: int
    action: Action
    source: int
    target: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Message:
    """Something has gone from one process to another, as both ends saw it.

    Attributes:
        step: of the run, from 0.
        action: the send, its peer the rank it went to.
        source: rank it left.
        bytes: that it carries.
        left: seconds at which it was sent.
        wanted: seconds at which its receiver began to wait for it.
        arrived: seconds at which it was there; estimated where the receiver, not having to wait, did not see it come.
        seen: whether the receiver waited, so that `arrived` was seen.
        ready: seconds from which bytes could move, for both ends had told the transport; NaN if that is not known.
    """

    step: int
    action: Action
    source: int
    bytes: int
    left: float
    wanted: float
    arrived: float
    seen: bool
    ready: float = math.nan


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory was taken (positive `delta`, bytes) or given back (negative).

    Attributes:
        step: of the run, from 0.
        slot: during which it happened, counted over all ranks; −1 before the step's first, `n_slots` after its last.
        at_end: whether it counts from the slot's end or from its start.
        rank: that holds it.
        category: what for.
        stage: the stage, or −1.
        micro_batch: the micro-batch, or −1.
        delta: bytes.
    """

    step: int
    slot: int
    at_end: bool
    rank: int
    category: Category
    stage: int
    micro_batch: int
    delta: int


@dataclass(frozen=True, slots=True)
class Updated:
    """A stage's optimizer has taken its step; it follows the step's last slot.

    Attributes:
        step: of the run, from 0.
        rank: that holds the stage.
        stage: the stage.
        seconds: it took.
        begun: seconds at which it began, on the clock that operations are timed with.
    """

    step: int
    rank: int
    stage: int
    seconds: float
    begun: float = math.nan


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step is over, its optimizer update included.

    Attributes:
        step: of the run, from 0.
        loss: the mean over its micro-batches, NaN without a loss.
        recording: the share of the step that the busiest rank spent on telling of it; NaN where that is not known.
    """

    step: int
    loss: float
    recording: float = math.nan


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run is over: `error` is None if it went through, else what ended it."""

    error: BaseException | None = None
