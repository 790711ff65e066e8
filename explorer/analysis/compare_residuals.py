"""Action by action: what was predicted, and what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.compare_steps import aligned_step
from explorer.core import Events, Kind, Trace
from explorer.core.metrics import compute_rows
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Indices = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Two steps, each begun at 0, and their rows of the same actions.

    Attributes:
        predicted, measured: events of the steps.
        left, right: (n_pairs,) rows of the two, by rank and the predicted start.
    """

    predicted: Events
    measured: Events
    left: Indices
    right: Indices


def residuals(predicted: Trace, measured: Trace, *, step: int | None = None) -> pd.DataFrame:
    """How far a prediction is from what happened, for each action that both traces have.

    Args:
        predicted: what was to happen.
        measured: what happened; any trace will do.
        step: number of the step in both; None for that of median makespan in each, the first left out.

    Returns:
        A row for each action, by rank and predicted start: rank, stage, micro_batch, segment, kind; seconds it took
        as predicted and as measured, their difference (measured − predicted) and ratio (measured ÷ predicted);
        predicted_start and measured_start, in seconds since the step began, and their start_difference.

    Raises:
        InputError: if one is no Trace or has no such step, or no action is in both.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
        >>> slow = ex.simulate(program, ex.Costs(backward=3.0))
        >>> ex.residuals(ex.simulate(program), slow)[["kind", "predicted", "measured", "ratio"]].drop_duplicates()
          kind  predicted  measured  ratio
        0    F        1.0       1.0    1.0
        2    B        2.0       3.0    1.5
    """
    import pandas as pd

    pairs = paired(predicted, measured, step=step)
    here, there = pairs.predicted.take(pairs.left), pairs.measured.take(pairs.right)
    took, really = here.end - here.start, there.end - there.start
    ratio = np.divide(really, took, out=np.full(len(took), np.nan), where=took > 0)
    kind = pd.Categorical.from_codes(here.kind, categories=pd.Index([kind.name for kind in Kind]))
    return pd.DataFrame(
        {
            "rank": here.rank,
            "stage": here.stage,
            "micro_batch": here.micro_batch,
            "segment": here.segment,
            "kind": kind.remove_unused_categories(),
            "predicted": took,
            "measured": really,
            "difference": really - took,
            "ratio": ratio,
            "predicted_start": here.start,
            "measured_start": there.start,
            "start_difference": there.start - here.start,
        }
    )


def paired(predicted: Trace, measured: Trace, *, step: int | None = None) -> Pairs:
    """The compute actions that two traces share.

    Raises:
        InputError: if one is no Trace or has no such step, or no action is in both.
    """
    one, other = (aligned_step(trace, step=step).events for trace in (predicted, measured))
    one, other = (events.take(compute_rows(events)) for events in (one, other))
    _, left, right = np.intersect1d(*_keys(one, other), return_indices=True)
    if not len(left):
        raise InputError(
            "residuals are of actions that both traces have; these share none on the same rank "
            f"({_first(one)} and {_first(other)}); give two traces of one program",
            argument="measured",
        )
    order = np.argsort(left, kind="stable")
    return Pairs(one, other, left[order], right[order])


def _keys(one: Events, other: Events) -> tuple[Indices, Indices]:
    """Rank, kind, stage, micro-batch and segment of each row of the two tables, as one number each."""
    keys = np.zeros(len(one), np.int64), np.zeros(len(other), np.int64)
    for name in ("rank", "kind", "stage", "micro_batch", "segment"):
        columns = [getattr(events, name).astype(np.int64) + 1 for events in (one, other)]  # −1 = does not apply
        n = 1 + max(int(column.max(initial=0)) for column in columns)
        keys = keys[0] * n + columns[0], keys[1] * n + columns[1]
    return keys


def _first(events: Events) -> str:
    if not len(events):
        return "no action at all"
    kind = Kind(int(events.kind[0])).name
    return f"{events.stage[0]}{kind}{events.micro_batch[0]} on rank {events.rank[0]}"
