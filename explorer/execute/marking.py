"""Where on a trace's clock the faults of a run happened."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.core import Mark, Program
from explorer.execute.faults import DelayMessage, Injected
from explorer.execute.virtual_clock import LaidStep


def marks_of(injected: Sequence[Injected], laid: Sequence[LaidStep], program: Program, clock: str) -> tuple[Mark, ...]:
    """A mark a fault: where a real clock saw it, on a virtual one at its slot."""
    return tuple(
        Mark(
            one.step,
            one.rank,
            one.begun if clock == "real" else _of_slot(one, laid[one.step], program),
            str(one.fault),
        )
        for one in injected
        if one.step < len(laid)
    )


def _of_slot(one: Injected, step: LaidStep, program: Program) -> float:
    """Its slot's start, or its end where a message leaves; of one that did not run, the end of what ran before it."""
    times = step.end if isinstance(one.fault, DelayMessage) else step.start
    if not np.isnan(times[one.slot]):
        return float(times[one.slot])
    first = int(program.rank_offsets[one.rank])
    before = step.end[first : one.slot]
    return float(np.nanmax(before)) if np.isfinite(before).any() else step.begin
