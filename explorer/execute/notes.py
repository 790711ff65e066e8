"""What is to be known about a run's times, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from explorer.execute.cores import n_cores

if TYPE_CHECKING:
    from explorer.core import Program
    from explorer.execute.events import Started


def notes_of(program: Program, clock: str, started: Started | None, recording: float) -> tuple[str, ...]:
    """How a run started, what it could not do at once, and what watching it took.

    Args:
        program: that ran.
        clock: of its trace.
        started: how its processes came to be, or None.
        recording: the share of a step that the busiest rank spent on recording; NaN where that is not known.
    """
    notes = [str(started)] if started else []
    n_together = int(np.count_nonzero(np.diff(program.slot_offsets) > 1))
    if n_together:
        notes.append(
            f"{n_together} slots hold an overlap of several actions; a rank has one thread here, which ran them one "
            "after the other"
        )
    if clock == "real" and n_cores() < program.n_ranks:
        notes.append(f"{n_cores()} cores for {program.n_ranks} ranks: they waited for each other's cores")
    if not math.isnan(recording):
        notes.append(f"recording took the busiest rank {recording:.2%} of a step")
    return tuple(notes)
