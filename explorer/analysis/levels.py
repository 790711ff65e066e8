"""What rises and falls: a step function of time for each rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

_ROUNDING = 1e-12  # of the latest time


@dataclass(frozen=True, eq=False)
class Levels:
    """A step function of time for each rank: from `time` on the level holds, until the next row of that rank.

    Rank r owns rows ``offsets[r]`` to ``offsets[r + 1]``, in order of time. Before its first row a rank is at 0.

    Attributes:
        time: (n_rows,) float64, seconds; within a step no two rows of a rank share one.
        level: (n_rows,) int64, bytes or a count.
        offsets: (n_ranks + 1,) int64, where each rank's rows begin.
    """

    time: npt.NDArray[np.float64]
    level: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of_changes(
        cls,
        rank: npt.NDArray[Any],
        step: npt.NDArray[Any],
        time: npt.NDArray[np.float64],
        delta: npt.NDArray[Any],
        *,
        n_ranks: int,
    ) -> Levels:
        """The levels that changes add up to; every step begins from 0, and what happens at one instant is one row.

        Args:
            rank: (n_changes,), the pipeline rank.
            step: (n_changes,), number of the training step.
            time: (n_changes,), seconds.
            delta: (n_changes,), how much the level rises.
            n_ranks: number of pipeline ranks.
        """
        order = np.lexsort((time, step, rank))
        rank, step, time, delta = rank[order], step[order], time[order], delta[order]
        new_group = _differs(rank) | _differs(step)
        running = np.concatenate([[0], np.cumsum(delta, dtype=np.int64)])
        group = np.cumsum(new_group[:-1]) - 1
        level = running[1:] - running[np.flatnonzero(new_group[:-1])[group]] if len(rank) else running[1:]
        last_of_instant = (new_group | _later(time))[1:]
        offsets = np.searchsorted(rank[last_of_instant], np.arange(n_ranks + 1)).astype(np.int64)
        return cls(time[last_of_instant], level[last_of_instant], offsets)

    @property
    def n_ranks(self) -> int:
        """Number of pipeline ranks."""
        return len(self.offsets) - 1

    def of(self, rank: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Time and level of one rank's rows."""
        rows = slice(self.offsets[rank], self.offsets[rank + 1])
        return self.time[rows], self.level[rows]

    def peaks(self) -> npt.NDArray[np.int64]:
        """(n_ranks,) the highest level of each rank; 0 where nothing changes."""
        return np.array([self.of(rank)[1].max(initial=0) for rank in range(self.n_ranks)], np.int64)

    def to_frame(self, level: str = "level") -> pd.DataFrame:
        """As a DataFrame: rank, time in seconds, and the level under that name."""
        import pandas as pd

        rank = np.repeat(np.arange(self.n_ranks), np.diff(self.offsets))
        return pd.DataFrame({"rank": rank, "time": self.time, level: self.level})


def _later(time: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """(n + 1,) as `_differs`, but times that only rounding keeps apart are one instant."""
    least = _ROUNDING * float(np.abs(time).max(initial=0.0))
    return np.concatenate([[True], np.abs(np.diff(time)) > least, [True]])[: len(time) + 1]


def _differs(column: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(n + 1,) whether each row differs from the one before; true at the beginning and past the end."""
    return np.concatenate([[True], column[1:] != column[:-1], [True]])[: len(column) + 1]
