"""What an action's seconds consist of: what its like takes, how slow its rank is, and what it alone took besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.classes import Classes
from explorer.analysis.faults import Faults, faults_of
from explorer.analysis.timed import TimedStep
from explorer.core import Costs, Mark

Floats = npt.NDArray[np.float64]

_SLOW = 1.05  # times its own median over the steps, from which on a rank is called slow
_ENOUGH = 3  # steps that a median over steps takes


class Durations(NamedTuple):
    """What the seconds of each class and each node consist of.

    Attributes:
        median: (n_classes,) float64, seconds of each class in this step; NaN where none of it ran.
        factor: (n_ranks,) float64, how many times as long each rank takes as it should; 1 = as it should.
        nominal: (n_classes,) float64, seconds that each class would take on a rank as it should be.
        of_node: (n_nodes, 3) float64, each node's seconds above its median, those that its rank's slowness costs, and
            the nominal rest.
        faults: that the step is marked with; what they lengthen is told apart from what takes long by itself.
    """

    median: Floats
    factor: Floats
    nominal: Floats
    of_node: Floats
    faults: Faults = Faults()


def durations_of(steps: Sequence[TimedStep], costs: Costs | None, marks: Iterable[Mark] = ()) -> list[Durations]:
    """What durations consist of, for each of the `steps` of one trace.

    A rank is slow as a fault says that the step is marked with; else by the costs' `time_factor`, against the ranks'
    median (of two in the middle the lower), where they say so; or where, of at least three steps, it takes in one of
    them 5 % longer than by its median over those that count.

    Args:
        steps: of one trace, in order.
        costs: of the trace, or None.
        marks: of the trace.
    """
    if not steps:
        return []
    program = steps[0].network.program
    n_ranks = program.n_ranks
    faults = [faults_of(marks, program, step=step.number) for step in steps]
    medians = [
        step.network.classes.medians(step.end - step.start - _late(step, put))
        for step, put in zip(steps, faults, strict=True)
    ]
    said = np.ones(n_ranks)
    if costs is not None:
        factor = costs.rank_factors(program)
        said = np.maximum(factor / np.sort(factor)[(n_ranks - 1) // 2], 1.0)
    usual = _over_steps(medians) if len(steps) >= _ENOUGH else None
    found = []
    for step, median, put in zip(steps, medians, faults, strict=True):
        factor = said if usual is None else np.maximum(said, _slowness(step.network.classes, median, usual, n_ranks))
        if put.slow:
            factor = factor.copy()
            factor[list(put.slow)] = list(put.slow.values())
        found.append(_durations(step, median, factor)._replace(faults=put))
    return found


def _late(step: TimedStep, faults: Faults) -> Floats:
    """(n_nodes,) seconds by which faults made each longer."""
    late = np.zeros(step.network.n_nodes)
    for action, seconds in faults.late.items():
        late[step.network.node_of_slot[step.network.program.slot_of_action[action]]] += seconds
    return np.minimum(late, step.seconds)


def _over_steps(medians: list[Floats]) -> Floats:
    """(n_classes,) the median over the steps that count: all but the first."""
    table = np.stack(medians[1:])
    known = np.isfinite(table).any(axis=0)
    usual = np.full(table.shape[1], np.nan)
    usual[known] = np.nanmedian(table[:, known], axis=0)
    return usual


def _slowness(classes: Classes, median: Floats, usual: Floats, n_ranks: int) -> Floats:
    """(n_ranks,) how much longer each rank takes than usual, where that is much; else 1."""
    factor = np.ones(n_ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = median / usual
    for rank in range(n_ranks):
        of_rank = ratio[(classes.rank == rank) & np.isfinite(ratio)]
        if len(of_rank) and np.median(of_rank) >= _SLOW:
            factor[rank] = np.median(of_rank)
    return factor


def _durations(step: TimedStep, median: Floats, factor: Floats) -> Durations:
    classes = step.network.classes
    nominal = median / factor[classes.rank]
    of = classes.of_node
    seconds = step.seconds
    columns = np.zeros((step.network.n_nodes, 3))
    there = (of >= 0) & np.isfinite(step.start)
    known = of[there]
    columns[there, 0] = seconds[there] - median[known]
    columns[there, 1] = median[known] - nominal[known]
    columns[there, 2] = nominal[known]
    return Durations(median, factor, nominal, columns)
