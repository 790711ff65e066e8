"""Measured seconds → the costs of a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Kind, Program

Floats = npt.NDArray[np.float64]
_PASSES = (Kind.F, Kind.B, Kind.I, Kind.W)


def seconds_of_passes(medians: Mapping[Kind, Floats]) -> dict[str, Any]:
    """The arguments of Costs, each (n_stages,), from the median seconds of each kind; NaN where a stage has none.

    A stage's B that was never whole is its I and W together, and where only B is known I and W are half of it.
    """
    full, inputs, weights = (medians[kind] for kind in (Kind.B, Kind.I, Kind.W))
    split, whole = ~np.isnan(inputs), ~np.isnan(full)
    return {
        "forward": medians[Kind.F],
        "backward": np.where(whole, full, inputs + weights) if (split | whole).any() else None,
        "backward_input": np.where(split, inputs, full / 2) if split.any() else None,
        "backward_weight": np.where(split, weights, full / 2) if split.any() else None,
    }


def refit(costs: Costs, program: Program, seconds: Floats, *, host: float = 0.0) -> Costs:
    """`costs` with the median seconds that steps took.

    Args:
        costs: from the warm-up, (n_stages,) each; it stays where a stage's pass only ran as a part of an Overlap.
        program: that ran.
        seconds: (n_steps, n_slots) of each slot.
        host: seconds besides that each action takes of its rank, as `between` finds them.
    """
    single = np.diff(program.slot_offsets) == 1
    action = program.slot_offsets[:-1][single]
    kind, stage, taken = program.kind[action], program.stage[action], seconds[:, single]
    before = dict(
        zip(_PASSES, (costs.forward, costs.backward, costs.backward_input, costs.backward_weight), strict=True)
    )
    medians = {}
    for one in _PASSES:
        known = np.full(program.n_stages, np.nan)
        for s in range(program.n_stages):
            rows = (kind == one) & (stage == s)
            if rows.any():
                known[s] = np.median(taken[:, rows])
        old = before[one]
        medians[one] = known if old is None else np.where(np.isnan(known) & _ran(program, one), old, known)
    return replace(costs, **seconds_of_passes(medians), fixed=host)


def between(start: Floats, end: Floats, rank_offsets: npt.NDArray[np.int64]) -> float:
    """Seconds from one action's end to the next one's start on its rank, where that has nothing to wait for.

    That is what the host takes: posting messages, looking up what is next, telling of it. A quarter of a rank's slots
    at least have what they need when their turn comes, so that the lower quartile of the gaps is taken.

    Args:
        start: (n_slots,) seconds, by rank and slot.
        end: the same.
        rank_offsets: (n_ranks + 1,) where each rank's slots begin.
    """
    gaps = start[1:] - end[:-1]
    own = np.ones(len(start), np.bool_)
    own[rank_offsets[:-1]] = False  # a rank's first has none before it
    known = gaps[own[1:]]
    known = known[~np.isnan(known)]
    return max(float(np.quantile(known, 0.25)), 0.0) if len(known) else 0.0


def _ran(program: Program, kind: Kind) -> npt.NDArray[np.bool_]:
    """(n_stages,) whether the stage has an action of this kind at all."""
    return np.bincount(program.stage[program.kind == kind], minlength=program.n_stages) > 0
