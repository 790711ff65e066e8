"""A trace's marks from a file."""

from __future__ import annotations

from explorer.core import Mark
from explorer.io.columns import read_column, read_whole, unlike

_MOST = 2**31 - 1
_SECONDS = 1e15  # so large that differences still mean something
_LONGEST = 500  # characters


def read_marks(given: object, n_ranks: int) -> tuple[Mark, ...]:
    """The marks that a document lists.

    Raises:
        InputError: if one is none.
    """
    if not isinstance(given, list):
        raise unlike("marks", "a list of [step, rank, time, text]", given)
    return tuple(_mark(row, n_ranks) for row in given)


def _mark(row: object, n_ranks: int) -> Mark:
    if not isinstance(row, list) or len(row) != 4 or not isinstance(row[3], str) or len(row[3]) > _LONGEST:
        raise unlike("a mark", "[step, rank, time, text]", row)
    step = read_whole(row[0], "a mark's step", low=0, high=_MOST)
    rank = read_whole(row[1], "a mark's rank", low=0, high=n_ranks - 1)
    time = read_column([row[2]], "a mark's time", "float64", length=1, low=-_SECONDS, high=_SECONDS)
    return Mark(step, rank, float(time[0]), row[3])
