"""Steps and what they wait for: what both engines run where messages meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel
from explorer.simulate.flows import Flows
from explorer.simulate.layout import Floats

Order = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]


class Loads(NamedTuple):
    """Which messages on shared links move in which step; a step ends when all of its messages have arrived.

    Attributes:
        flows: the messages.
        step: (n_flows,) int64, the step each moves in.
    """

    flows: Flows
    step: Indices


class Plan(NamedTuple):
    """What the engine runs: lines of steps, one at a time each, and what the steps wait for besides.

    Attributes:
        seconds: (n_steps,) float64, how long each takes.
        line_offsets: (n_lines + 1,) int64, where each line's steps begin.
        edge_offsets: (n_steps + 1,) int64, where each step's incoming edges begin.
        source: (n_edges,) int64, the step waited for.
        from_start: (n_edges,) bool, whether it need only have begun.
        lag: (n_edges,) float64, seconds that pass on the way.
        loads: messages that share links, which make their steps longer than `seconds`; None if there are none.
    """

    seconds: Floats
    line_offsets: npt.NDArray[np.int64]
    edge_offsets: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    from_start: npt.NDArray[np.bool_]
    lag: Floats
    loads: Loads | None = None


class Times(NamedTuple):
    """When the steps of a plan run, all (n_steps,) float64 seconds.

    Attributes:
        start: of each.
        end: of each.
        moves: when the first of the bytes moves that a step brings on its way; its start, if it has none.
    """

    start: Floats
    end: Floats
    moves: Floats


Solver = Callable[[Plan, Order], Times]


def sweep_steps(plan: Plan, order: Order) -> Times:
    """The times of a `plan` whose lines hold one step each and whose messages have their links to themselves.

    Args:
        plan: to run.
        order: (n_steps,) int64, the steps so that each comes after all it waits for.
    """
    start, end = np.empty(len(order)), np.empty(len(order))
    _sweep(order, plan.edge_offsets, plan.source, plan.from_start, plan.lag, plan.seconds, start, end)
    return Times(start, end, start)


def with_detours(plan: Plan, edges: Indices) -> Plan:
    """The same plan with a step, in a line of its own, between the two ends of each of some edges.

    Args:
        plan: without loads; the new steps come behind its own, in order of `edges`.
        edges: (n,) which edges; each begins its new step, and its lag passes behind that.
    """
    n_steps, n = len(plan.seconds), len(edges)
    source = plan.source.copy()
    source[edges] = n_steps + np.arange(n)
    more = np.arange(1, n + 1)
    return Plan(
        np.concatenate([plan.seconds, np.zeros(n)]),
        np.concatenate([plan.line_offsets, plan.line_offsets[-1] + more]),
        np.concatenate([plan.edge_offsets, plan.edge_offsets[-1] + more]),
        np.concatenate([source, plan.source[edges]]),
        np.concatenate([plan.from_start, np.zeros(n, np.bool_)]),
        np.concatenate([plan.lag, np.zeros(n)]),
    )


@kernel
def _sweep(
    order: Order,
    offsets: npt.NDArray[np.int64],
    source: npt.NDArray[np.int64],
    from_start: npt.NDArray[np.bool_],
    lag: Floats,
    seconds: Floats,
    start: Floats,
    end: Floats,
) -> None:
    for step in order:
        time = 0.0
        for edge in range(offsets[step], offsets[step + 1]):
            other = source[edge]
            time = max(time, (start[other] if from_start[edge] else end[other]) + lag[edge])
        start[step] = time
        end[step] = time + seconds[step]
