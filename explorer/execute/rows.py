"""A table of whole numbers that grows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class Rows:
    """(n_rows, n_columns) int64 that is appended to; the array behind it doubles when full."""

    def __init__(self, n_columns: int) -> None:
        self._table = np.empty((1024, n_columns), np.int64)
        self._n_rows = 0

    def append(self, row: tuple[int, ...]) -> None:
        """Put one row behind the others."""
        if self._n_rows == len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        self._table[self._n_rows] = row
        self._n_rows += 1

    def copy(self) -> npt.NDArray[np.int64]:
        """(n_rows, n_columns) the rows so far."""
        return self._table[: self._n_rows].copy()

    def __len__(self) -> int:
        return self._n_rows
