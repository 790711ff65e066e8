"""Idle intervals with their causes, as the browser draws them between the bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.figures.palette import CAUSE_LOOKS
from explorer.widgets.columns import MS, as_column

_MOST_SENT = 1000  # sentences sent with the intervals; of more, each is asked for when the pointer rests there


@dataclass(frozen=True, eq=False)
class Gaps:
    """Idle intervals in any order; columns are (n,).

    Attributes:
        rank: integers, the rank that is idle.
        start: float64, seconds.
        end: float64, seconds.
        cause: integers, a place in `causes`.
        causes: names, such as "latency"; CAUSE_LOOKS says how each looks.
        sentence: of a place in the columns, what to tell of it.
    """

    rank: npt.NDArray[Any]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    cause: npt.NDArray[Any]
    causes: tuple[str, ...]
    sentence: Callable[[int], str]

    def order(self) -> npt.NDArray[np.int64]:
        """(n,) places in order of rank, then start: the order in which they are packed."""
        return np.lexsort((self.start, self.rank))


def pack_gaps(gaps: Gaps, n_ranks: int) -> dict[str, Any]:
    """The intervals sorted by rank, then start.

    Returns:
        `n`; `causes`, the looks of those that occur; `offset`, (n_ranks + 1,), where those of each rank begin; (n,)
        columns `start` and `end` in ms and `cause`, a place in `causes`; and `sentences`, (n,), or none where they
        are many.
    """
    order = gaps.order()
    codes = np.unique(gaps.cause)
    columns: dict[str, npt.NDArray[Any]] = {
        "offset": np.searchsorted(gaps.rank[order], np.arange(n_ranks + 1)).astype(np.uint32),
        "start": gaps.start[order] * MS,
        "end": gaps.end[order] * MS,
        "cause": np.searchsorted(codes, gaps.cause[order]).astype(np.uint8),
    }
    few = len(order) <= _MOST_SENT
    return {
        "n": len(order),
        "causes": [CAUSE_LOOKS[gaps.causes[code]]._asdict() for code in codes.tolist()],
        "sentences": [gaps.sentence(row) for row in order.tolist()] if few else [],
        **{name: as_column(values)._asdict() for name, values in columns.items()},
    }
