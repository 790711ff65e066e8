"""Steps of optimizers that ranks have recorded, as U of their stages."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from explorer.core import Events, Kind, Origin
from explorer.core.clocks import corrected
from explorer.io.rank_files import RankFile, UpdateLine


def update_events(file: RankFile, numbers: Collection[int], zero: float, *, are_several: bool) -> Events:
    """A row for each stage of every update that belongs to one of these steps.

    Where one optimizer holds parameters of several stages, what was measured is the whole; each stage has its share of
    it by the bytes of its parameters, one behind the other, and is said to be modelled.

    Args:
        file: of a rank.
        numbers: of steps.
        zero: seconds on the common clock that the trace counts from.
        are_several: whether clocks differ, and the rank's has to be corrected.
    """
    tables = [_rows(file, update, zero, are_several) for update in file.updates if update.step in numbers]
    return Events.concatenate(*tables) if tables else Events.of(step=())


def _rows(file: RankFile, update: UpdateLine, zero: float, are_several: bool) -> Events:
    own = np.array([update.begin, update.end], np.float64) * 1e-9
    begin, end = (corrected(own, file.comparisons) if are_several else own) - zero
    edges = begin + (end - begin) * _shares(update)
    is_whole = len(update.stage) == 1
    return Events.of(
        step=update.step,
        rank=file.rank,
        stage=update.stage,
        kind=Kind.U,
        start=edges[:-1],
        end=edges[1:],
        origin=Origin.MEASURED if is_whole else Origin.MODELLED,
    )


def _shares(update: UpdateLine) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(n_stages + 1,) from 0 to 1: where each stage's share begins, and the end."""
    weights = np.maximum(update.bytes.astype(np.float64), 1.0)
    edges = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    edges[-1] = 1.0
    return edges
