"""Steps and what they wait for: what both engines run where messages meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import kernel
from explorer.simulate.layout import Floats

Order = npt.NDArray[np.int64]


class Plan(NamedTuple):
    """What the engine runs: lines of steps, one at a time each, and what the steps wait for besides.

    Attributes:
        seconds: (n_steps,) float64, how long each takes.
        line_offsets: (n_lines + 1,) int64, where each line's steps begin.
        edge_offsets: (n_steps + 1,) int64, where each step's incoming edges begin.
        source: (n_edges,) int64, the step waited for.
        from_start: (n_edges,) bool, whether it need only have begun.
        lag: (n_edges,) float64, seconds that pass on the way.
    """

    seconds: Floats
    line_offsets: npt.NDArray[np.int64]
    edge_offsets: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    from_start: npt.NDArray[np.bool_]
    lag: Floats


Solver = Callable[[Plan, Order], tuple[Floats, Floats]]


def sweep_steps(plan: Plan, order: Order) -> tuple[Floats, Floats]:
    """Start and end of each step of a `plan` whose lines hold one step each, both (n_steps,) seconds.

    Args:
        plan: to run.
        order: (n_steps,) int64, the steps so that each comes after all it waits for.
    """
    start, end = np.empty(len(order)), np.empty(len(order))
    _sweep(order, plan.edge_offsets, plan.source, plan.from_start, plan.lag, plan.seconds, start, end)
    return start, end


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
