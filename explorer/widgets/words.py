"""What the app says of a picture and of what went wrong, and the stretch of time that a picture shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from explorer.core import Trace
from explorer.errors import ExplorerError, InputError, ProgramError
from explorer.widgets.numbers import Number
from explorer.widgets.runner import Job
from explorer.widgets.where import KERNEL, PROCESSES

if TYPE_CHECKING:
    from explorer.execute import Run

PREDICTED = "Predicted from the costs set here"
STOPPING = "Stopping …"
MEASURED = {
    KERNEL: "virtual ranks: measured operations, modelled placement and links",
    PROCESSES: "real clocks: a process a rank, gloo on this machine",
}


def sentence(error: BaseException) -> str:
    """The first line of what `error` says, with its kind where it is not one of ours."""
    text = str(error).strip().split("\n")[0]
    if isinstance(error, ExplorerError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def not_begun(error: BaseException) -> str:
    """Why what is shown did not run by itself, in a sentence; without what would do where that is to simulate it."""
    text = sentence(error)
    if isinstance(error, InputError):
        return f"{PREDICTED}. {text}"
    if isinstance(error, ProgramError) and text.count("; ") > 1:
        text = text.rpartition("; ")[0]
    return f"{PREDICTED}. Simulated only: {text}"


def origin_of(job: Job) -> str:
    """Where the times of a run come from, and how it came to start."""
    start = job.recorder.start
    return MEASURED[job.backend] + (f"; {start}" if start else "")


def label(trace: Trace, origin: str, said: tuple[Number, ...]) -> str:
    """What a screen reader is told of a picture."""
    program = trace.program
    values = "; ".join(f"{number.name} {' and '.join(number.values)}" for number in said)
    return f"Pipeline timeline, {origin}: {program.n_ranks} ranks, {program.n_micro_batches} micro-batches; {values}"


def until(trace: Trace) -> float:
    """Seconds at which the last of it is over, the optimizer included."""
    return float(trace.events.end.max(initial=0.0))


def calm(end: float, expected: float) -> float:
    """The stretch to show: as expected, or a little more than was needed, so that it does not move with each frame."""
    if end <= expected * 1.02:
        return expected
    n_quarters = math.ceil((end / expected - 1) / 0.25)
    return float(expected * 1.25**n_quarters)


def parity(run: Run) -> str:
    """Whether a run's gradients are those of one process, and how far off the worst is."""
    return f"{'yes' if run.parity else 'no'}, {run.parity_worst:.0e}"
