"""Which bars share a lane: an F and a B that run together are drawn one above the other, each half as high."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.events import Events, Stream


class Share(NamedTuple):
    """What each bar has of its lane; both columns (n,).

    Attributes:
        parts: int8, into how many equal parts, one above the other, the lane is divided: 1 for a bar alone.
        above: int8, how many of them are above this bar's.
    """

    parts: npt.NDArray[np.int8]
    above: npt.NDArray[np.int8]

    def take(self, rows: npt.NDArray[np.intp]) -> Share:
        """That of the given rows."""
        return Share(self.parts[rows], self.above[rows])

    def middle(self) -> npt.NDArray[np.float64]:
        """(n,) how far below the lane's middle each bar's is, in heights of a bar alone."""
        return np.asarray((self.above + 0.5) / self.parts - 0.5)


def shared_lanes(events: Events) -> Share:
    """The share of each event: kinds that begin together on a rank divide its lane, in the order of their codes.

    Only what computes and takes time does so; all else is alone.
    """
    share = Share(np.ones(len(events), np.int8), np.zeros(len(events), np.int8))
    rows = np.flatnonzero((events.stream == Stream.COMPUTE) & (events.end > events.start))
    rows = rows[np.lexsort((events.kind[rows], events.start[rows], events.rank[rows]))]
    opens = _differs(events.rank[rows]) | _differs(events.start[rows])
    kinds = np.cumsum(opens | _differs(events.kind[rows]))
    first = np.flatnonzero(opens)
    n_rows = np.diff(first, append=len(rows))
    share.above[rows] = kinds - np.repeat(kinds[first], n_rows)
    share.parts[rows] = 1 + np.repeat(share.above[rows[first + n_rows - 1]], n_rows)
    return share


def _differs(values: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """(n,) whether each value is another than the one before."""
    return np.concatenate([np.ones(min(len(values), 1), bool), values[1:] != values[:-1]])
