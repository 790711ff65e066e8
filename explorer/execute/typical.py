"""Measured seconds → what is typical of them, and the costs of a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Graph, Kind, Program

Floats = npt.NDArray[np.float64]
_PASSES = (Kind.F, Kind.B, Kind.I, Kind.W)


def seconds_of_passes(typicals: Mapping[Kind, Floats]) -> dict[str, Any]:
    """The arguments of Costs, each (n_stages,), from the typical seconds of each kind; NaN where a stage has none.

    A stage's B that was never whole is its I and W together, and where only B is known I and W are half of it.
    """
    full, inputs, weights = (typicals[kind] for kind in (Kind.B, Kind.I, Kind.W))
    split, whole = ~np.isnan(inputs), ~np.isnan(full)
    return {
        "forward": typicals[Kind.F],
        "backward": np.where(whole, full, inputs + weights) if (split | whole).any() else None,
        "backward_input": np.where(split, inputs, full / 2) if split.any() else None,
        "backward_weight": np.where(split, weights, full / 2) if split.any() else None,
    }


def refit(costs: Costs, program: Program, seconds: Floats, measured: Lags) -> Costs:
    """`costs` with what steps typically took.

    Args:
        costs: from the warm-up, (n_stages,) each; it stays where a stage's pass only ran as a part of an Overlap.
        program: that ran.
        seconds: (n_steps, n_slots) of each slot.
        measured: of the same steps; on a virtual clock there is none.
    """
    single = np.diff(program.slot_offsets) == 1
    action = program.slot_offsets[:-1][single]
    kind, stage, taken = program.kind[action], program.stage[action], seconds[:, single]
    before = dict(
        zip(_PASSES, (costs.forward, costs.backward, costs.backward_input, costs.backward_weight), strict=True)
    )
    found = {}
    for one in _PASSES:
        known = np.full(program.n_stages, np.nan)
        for s in range(program.n_stages):
            rows = (kind == one) & (stage == s)
            if rows.any():
                known[s] = typical(taken[:, rows].reshape(-1))
        old = before[one]
        found[one] = known if old is None else np.where(np.isnan(known) & _ran(program, one), old, known)
    host = max(typical(measured.host), 0.0)
    latency = max(typical(measured.message) - host, 0.0) if len(measured.message) else costs.latency
    return replace(costs, **seconds_of_passes(found), fixed=host, latency=latency)


class Lags(NamedTuple):
    """How late slots began after all they need was there.

    Attributes:
        host: (n,) seconds, of those that came straight after another of their rank: posting messages, looking up what
            is next, telling of it.
        message: (m,) seconds, of those that waited for a message, since the slot that sent it had ended; the host's
            are a part of them.
    """

    host: Floats
    message: Floats


def lags(graph: Graph, start: Floats, end: Floats) -> Lags:
    """How late slots began on a real clock, where it is certain what they waited for.

    A message sent after its rank was free was waited for; one sent long enough before that was there in time.

    Args:
        graph: of the program that ran.
        start: (n_slots,) seconds; NaN where a slot has not run.
        end: the same.
    """
    program, edges = graph.program, graph.messages
    known = np.where(np.isnan(end), np.inf, end)
    free = np.roll(known, 1)
    free[program.rank_offsets[:-1][np.diff(program.rank_offsets) > 0]] = -np.inf
    # of several actions in a slot each sends when it has ended, which the slot's own times do not say
    ended = np.where(np.diff(program.slot_offsets) == 1, known, np.inf)
    sent = np.full(len(start), -np.inf)
    np.maximum.at(sent, _targets(graph)[edges], ended[graph.source_slot[edges]])
    ran = ~np.isnan(start) & (sent < np.inf) & (free < np.inf)
    waited = ran & (sent > free)
    message = start[waited] - sent[waited]
    followed = np.flatnonzero(ran & (free > -np.inf))
    in_time = followed[free[followed] - sent[followed] >= typical(message)]
    return Lags(start[in_time] - free[in_time], message)


def typical(seconds: npt.ArrayLike) -> float:
    """The mean without the lowest and the highest tenth; 0 of none.

    A step is a sum of many times, each of which is now and then much longer than most: medians would add up to too
    little, and means follow every hiccup.
    """
    ordered = np.sort(np.asarray(seconds, float))
    cut = len(ordered) // 10
    return float(ordered[cut : len(ordered) - cut].mean()) if len(ordered) else 0.0


def _targets(graph: Graph) -> npt.NDArray[np.int64]:
    """(n_edges,) the slot that waits along each edge."""
    return np.repeat(np.arange(graph.program.n_slots), np.diff(graph.edge_offsets))


def _ran(program: Program, kind: Kind) -> npt.NDArray[np.bool_]:
    """(n_stages,) whether the stage has an action of this kind at all."""
    return np.bincount(program.stage[program.kind == kind], minlength=program.n_stages) > 0
