"""Warm-up, steady state and cool-down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Trace
from explorer.core.metrics import compute_rows
from explorer.core.trace import check_trace

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("warm-up", "steady", "cool-down")
Floats = npt.NDArray[np.float64]


def phases(trace: Trace) -> pd.DataFrame:
    """When each rank warms up, is steady and cools down, in every step.

        rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
                warm-up ······ steady · cool-down ·

    Warm-up goes from a rank's first action to its first backward, cool-down from the end of its last forward to its
    last action's; steady is between. Where all forwards come first, as in GPipe, steady is empty. A rank that runs
    nothing backward is steady throughout.

    Returns:
        A row for each step, rank and phase: step, rank, phase, start and end in seconds.

    Raises:
        InputError: if it is no Trace.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1.
    """
    import pandas as pd

    trace = check_trace(trace)
    edges = np.stack([_edges(trace, step) for step in trace.steps]) if trace.steps else np.empty((0, 0, 4))
    n_steps, n_ranks, _ = edges.shape
    n = len(PHASES)
    frame = pd.DataFrame(
        {
            "step": np.repeat(np.asarray(trace.steps, np.int64), n_ranks * n),
            "rank": np.tile(np.repeat(np.arange(n_ranks), n), n_steps),
            "phase": pd.Categorical.from_codes(np.tile(np.arange(n), n_steps * n_ranks), categories=pd.Index(PHASES)),
            "start": edges[..., :-1].reshape(-1),
            "end": edges[..., 1:].reshape(-1),
        }
    )
    there: pd.DataFrame = frame[np.isfinite(frame["start"])].reset_index(drop=True)
    return there


def _edges(trace: Trace, step: int) -> Floats:
    """(n_ranks, 4) seconds of one step: first start, first backward, last forward's end, last end; ∞ if it did none."""
    events = trace.events.take(trace.events.step == step)
    rows = compute_rows(events)
    rank, kind, start, end = events.rank[rows], events.kind[rows], events.start[rows], events.end[rows]
    backward, forward = np.isin(kind, (Kind.B, Kind.I)), kind == Kind.F
    n_ranks = trace.n_ranks
    first = _first(rank, start, n_ranks)
    first_backward = _first(rank[backward], start[backward], n_ranks)
    last_forward, last = (-_first(rank[of], -end[of], n_ranks) for of in (forward, np.ones(len(rank), bool)))
    trains = np.isfinite(first_backward)
    steady_from = np.where(trains, first_backward, first)
    steady_until = np.where(trains, np.maximum(last_forward, first_backward), last)
    return np.stack([first, steady_from, steady_until, last], axis=1)


def _first(rank: npt.NDArray[np.int32], time: Floats, n_ranks: int) -> Floats:
    """(n_ranks,) the earliest of each rank's times; ∞ where it has none."""
    first = np.full(n_ranks, np.inf)
    np.minimum.at(first, rank, time)
    return first
