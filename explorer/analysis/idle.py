"""Every idle interval of every rank, and why it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.accounts import parts_of
from explorer.analysis.blame import Blame, blame_for
from explorer.analysis.cause import Cause
from explorer.analysis.durations import Durations, durations_of
from explorer.analysis.gaps import DRAINING, FILLING, Gaps, gaps_of
from explorer.analysis.idle_table import IdleCauses
from explorer.analysis.readiness import Ready, ready_in
from explorer.analysis.settling import (
    BANDWIDTH,
    HICCUP,
    HOST,
    IMBALANCE,
    LATENCY,
    MEMORY,
    QUEUE,
    STRAGGLER,
    STRUCTURE,
    settle,
)
from explorer.analysis.timed import TimedStep, timed_steps
from explorer.core import Trace
from explorer.core.trace import check_trace

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

_LEAST = 1e-9  # of a step's makespan: a smaller part of a gap goes to its largest
# causes whose action at fault may lie far back on the chain
_FAR = [Cause.IMBALANCE, Cause.STRAGGLER, Cause.HICCUP, Cause.MEMORY, Cause.QUEUE, Cause.HOST]
# where each cause's seconds come from, but for those of the structure
_COLUMNS = {
    Cause.IMBALANCE: IMBALANCE,
    Cause.STRAGGLER: STRAGGLER,
    Cause.HICCUP: HICCUP,
    Cause.MEMORY: MEMORY,
    Cause.QUEUE: QUEUE,
    Cause.LATENCY: LATENCY,
    Cause.BANDWIDTH: BANDWIDTH,
    Cause.HOST: HOST,
}


def idle_intervals(trace: Trace) -> IdleCauses:
    """The idle intervals of every rank and their causes as arrays; `idle_causes` says what they mean.

    Args:
        trace: any, simulated, executed, recorded or imported.

    Raises:
        InputError: if it is no Trace, or its events are not of its program.
        ProgramError: if its program is incomplete or cannot finish.
    """
    trace = check_trace(trace)
    steps = list(timed_steps(trace))
    tables, n_gaps = [], 0
    of_steps = durations_of(steps, trace.costs, trace.marks)
    for step, durations in zip(steps, of_steps, strict=True):
        gaps, columns = _explained(step, durations)
        columns["gap"] += n_gaps
        n_gaps += len(gaps.rank)
        tables.append(columns)
    numbers = tuple(step.number for step in steps)
    faults = {step.number: durations.faults for step, durations in zip(steps, of_steps, strict=True)}
    return IdleCauses(trace.program, numbers, **_joined(tables), faults=faults)


def idle_causes(trace: Trace) -> pd.DataFrame:
    """Every idle interval of every rank in every step, cut up by cause.

    The rows of a rank are disjoint and cover all the time, from the step's first start to its last end, in which it
    does not compute: their seconds add up to `trace.idle_per_rank`.

    **How a cause is found.** An action starts when the last of what it waits for is there: an action of its own rank,
    or another rank's with its message. What that waited for last came before it, and so on: a chain back to the
    step's beginning, whose actions and messages follow each other without a gap. A rank is idle between the end of
    one action and the start of the next. Each of the two has such a chain; they run together up to some point. The
    idle seconds are what the chain of the next action has more than that of the one before, and are divided as that
    is::

        rank 0   F0 F1 ░░ ░░ B0 B0       until B0: F0, then F0 B0 B0 of rank 1     4 s
        rank 1   .. F0 B0 B0 F1          until F1 has ended: F0 F1                 2 s

    So idle time is followed to where it comes from: if rank 2 makes rank 1 late and rank 1 therefore rank 0, rank 0's
    rows name rank 2. Summed over a rank, its idle time by cause is what the critical path has of the cause, less what
    the rank's own actions have of it.

    **The causes**, with what each row's action at fault is:

    - ``latency``, ``bandwidth``: of messages on the chain, as the costs divide their seconds (without costs all is
      latency); who sent the last of them. ``queue``: messages behind other messages of their rank or link, or a rank
      that stands at a message which it does not need next.
    - ``hiccup``: seconds of actions on the chain above the median (of two in the middle the lower)
      of their kind, stage and rank in that step.
      ``straggler``: what is due to a rank being slow, by the costs' `time_factor`, or by a fault that the trace is
      marked with, or against its own median over the steps, where that is 5 % or more. A rank that is always slow is
      told apart from a heavy stage by nothing else, and is called imbalance.
    - ``imbalance``: what stages take longer than the mean of the same work on other ranks; the heaviest action of
      the chain.
    - ``memory``: seconds by which a buffer between stages, or a wait that the program adds, came later than all else.
    - ``host``: all was there and nothing ran, or a trace cannot say why: Python, launch, operating system.
    - The rest is the schedule's own structure, actions on the chain beyond those of the rank itself: ``fill`` before
      the rank's first backward (or forward, where nothing runs backward), ``drain`` after its last forward,
      ``upstream`` between; what was running when the interval began. As far as another of the rank's own actions was
      ready meanwhile it is ``order``, and that action is named; a forward counts only where it would not have raised
      the most that the rank holds in the step.

    What the rank's own actions have of a cause more than the chain lessens the other parts of that gap. With equal
    stages this gives (P − 1)(F + B) of fill and drain for GPipe and 1F1B, and all that messages add as latency; with
    unequal ones Σ w − w_r of fill and drain and (M − 1)(max w − w_r) of imbalance, wherever the makespan is
    Σ w + (M − 1) max w for w = F + B.

    Returns:
        step, rank, start, end, seconds; cause; kind, stage, micro_batch and at_rank of the action at fault ("" and −1
        where there is none); and a sentence.

    Raises:
        InputError: if it is no Trace, or its events are not of its program.
        ProgramError: if its program is incomplete or cannot finish.

    Source: the closed forms are GPipe's, arXiv:1811.06965, and Narayanan et al. 2021's, arXiv:2104.04473; chains of
    waits followed to their origin are Böhme et al. 2010's, "Identifying the root causes of wait states in large-scale
    parallel applications".

    Example:
        >>> import explorer as ex
        >>> idle = ex.idle_causes(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)))
        >>> print(idle[["rank", "start", "end", "cause"]].to_string(index=False))
         rank  start  end cause
            0    2.0  4.0  fill
            0    6.0  7.0 drain
            1    0.0  1.0  fill
            1    7.0  9.0 drain
    """
    return idle_intervals(trace).to_frame()


def idle_summary(trace: Trace) -> pd.DataFrame:
    """Idle seconds by cause, a row for each step and rank.

    Sum its rows for a step's or the whole trace's; `total` is the sum over the causes.

    Args:
        trace: any.

    Raises:
        InputError: if it is no Trace.
    """
    import pandas as pd

    found = idle_intervals(trace)
    totals = found.totals()
    n_steps, n_ranks, n_causes = totals.shape
    index = pd.MultiIndex.from_product([found.steps, range(n_ranks)], names=["step", "rank"])
    names = pd.Index([cause.name.lower() for cause in Cause])
    frame = pd.DataFrame(totals.reshape(n_steps * n_ranks, n_causes), index=index, columns=names)
    frame["total"] = frame.sum(axis=1)
    return frame


def _explained(step: TimedStep, durations: Durations) -> tuple[Gaps, dict[str, npt.NDArray[Any]]]:
    """A step's gaps, and the columns of their rows."""
    gaps = gaps_of(step)
    others = step.network.classes.of_others(durations.nominal, step.network.program.n_ranks)
    parts = parts_of(step, gaps, durations, others)
    settle(gaps.rank, gaps.seconds, parts)
    ready = ready_in(step, gaps)
    by_cause = _by_cause(gaps, parts, ready, _LEAST * step.makespan)
    worst = np.asarray((by_cause[:, _FAR] > 0.0).any(axis=1))
    blame = blame_for(step, gaps, durations, others, worst)
    return gaps, _rows(step, gaps, by_cause, _faults(step, blame, ready), blame.awaited)


def _by_cause(gaps: Gaps, parts: Floats, ready: Ready, least: float) -> Floats:
    """(n_gaps, n_causes) seconds of each gap, each of a cause at least `least`."""
    found = np.zeros((len(gaps.rank), len(Cause)))
    for cause, column in _COLUMNS.items():
        found[:, cause] = parts[:, column]
    structure = parts[:, STRUCTURE]
    could_run = np.clip(gaps.end - np.maximum(gaps.start, ready.since), 0.0, structure)
    found[:, Cause.ORDER] = could_run
    phase = np.select([gaps.phase == FILLING, gaps.phase == DRAINING], [Cause.FILL, Cause.DRAIN], Cause.UPSTREAM)
    found[np.arange(len(phase)), phase] = structure - could_run
    small = np.where(found < least, found, 0.0)
    largest = found.argmax(axis=1)
    found -= small
    found[np.arange(len(phase)), largest] += small.sum(axis=1)
    return found


def _faults(step: TimedStep, blame: Blame, ready: Ready) -> npt.NDArray[np.int64]:
    """(n_gaps, n_causes) the action at fault, were it this cause."""
    chosen = {
        Cause.ORDER: np.append(step.network.action, -1)[ready.node],
        Cause.IMBALANCE: blame.heaviest,
        Cause.STRAGGLER: blame.slowest,
        Cause.HICCUP: blame.hiccup,
        Cause.MEMORY: blame.limited,
        Cause.QUEUE: np.where(blame.queued >= 0, blame.queued, blame.sent),
        Cause.LATENCY: blame.sent,
        Cause.BANDWIDTH: blame.sent,
        Cause.HOST: blame.delayed,
    }
    columns = [chosen.get(cause, blame.root) for cause in Cause]
    return np.stack([np.where(column >= 0, column, blame.awaited) for column in columns], axis=1)


def _rows(
    step: TimedStep, gaps: Gaps, by_cause: Floats, faults: npt.NDArray[np.int64], awaited: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """One row for each gap and cause, laid one behind the other within the gap."""
    gap, cause = np.nonzero(by_cause > 0.0)
    until = np.cumsum(by_cause, axis=1)[gap, cause]
    last = np.append(gap[1:] != gap[:-1], True)[: len(gap)]
    end = np.where(last, gaps.end[gap], gaps.start[gap] + until)
    first = np.append(True, last[:-1])[: len(gap)]
    start = np.where(first, gaps.start[gap], np.append(0.0, end[:-1])[: len(gap)])
    return {
        "step": np.full(len(gap), step.number, np.int32),
        "rank": gaps.rank[gap].astype(np.int32),
        "start": start,
        "end": end,
        "cause": cause.astype(np.int8),
        "gap": gap.astype(np.int32),
        "awaited": awaited[gap].astype(np.int32),
        "fault": faults[gap, cause].astype(np.int32),
        "after": np.append(step.network.action, -1)[gaps.after[gap]].astype(np.int32),
    }


_DTYPES = {
    **dict.fromkeys(("step", "rank", "gap", "awaited", "fault", "after"), np.int32),
    **{"start": np.float64, "end": np.float64, "cause": np.int8},
}


def _joined(tables: list[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {
        name: np.concatenate([table[name] for table in tables]) if tables else np.zeros(0, dtype)
        for name, dtype in _DTYPES.items()
    }
