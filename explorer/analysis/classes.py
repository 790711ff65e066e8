"""Nodes sorted by what they compute: the same kind of work of the same stage on the same rank takes equally long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Program

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Classes(NamedTuple):
    """Which nodes do the same work.

    Attributes:
        of_node: (n_nodes,) int32, the class of each; −1 = computes nothing.
        rank: (n_classes,) int32.
        stage: (n_classes,) int32, of the first action.
        signature: (n_classes,) int32, its kinds of work as a number from 0: F, B, …, or an F with a B at once.
    """

    of_node: Ints
    rank: Ints
    stage: Ints
    signature: Ints

    @property
    def n_signatures(self) -> int:
        """Number of different kinds of work."""
        return int(self.signature.max(initial=-1)) + 1

    def medians(self, values: Floats) -> Floats:
        """(n_classes,) the median of each class's `values`, (n_nodes,); NaN where none of it is known.

        Of two in the middle it is the lower: one late action among two is then seen to be late.
        """
        rows = np.flatnonzero((self.of_node >= 0) & np.isfinite(values))
        of, values = self.of_node[rows], values[rows]
        values = values[np.lexsort((values, of))]
        counts = np.bincount(of, minlength=len(self.rank))
        first = np.cumsum(counts) - counts
        known = counts > 0
        found = np.full(len(self.rank), np.nan)
        found[known] = values[first[known] + (counts[known] - 1) // 2]
        return found

    def of_others(self, values: Floats, n_ranks: int) -> Floats:
        """(n_ranks, n_signatures) the mean of the classes of each signature that other ranks have.

        Its own where no other rank does such work, 0 where none does.

        Args:
            values: (n_classes,); NaN where unknown.
            n_ranks: number of ranks.
        """
        known = np.isfinite(values)
        place = self.rank[known], self.signature[known]
        total, count = np.zeros((2, n_ranks, self.n_signatures))
        np.add.at(total, place, values[known])
        np.add.at(count, place, 1)
        others, n_others = total.sum(axis=0) - total, count.sum(axis=0) - count
        return np.where(n_others > 0, others / np.maximum(n_others, 1), total / np.maximum(count, 1))


def classes_of(program: Program, slot: Ints) -> Classes:
    """The classes of nodes that compute these slots, (n_nodes,) each; −1 = computes nothing.

    Of a slot with several actions the first two tell what it is.
    """
    rows = np.flatnonzero(slot >= 0)
    first = program.slot_offsets[slot[rows]]
    second = first + (program.slot_offsets[slot[rows] + 1] - first > 1)
    n_kinds, n_stages = len(Kind) + 1, program.n_stages + 1
    alone = second == first
    kinds = program.kind[first].astype(np.int64) * n_kinds + np.where(alone, len(Kind), program.kind[second])
    stages = program.stage[first].astype(np.int64) * n_stages + np.where(alone, program.n_stages, program.stage[second])
    key = (kinds * n_stages**2 + stages) * program.n_ranks + program.rank_of_slot[slot[rows]]
    keys, of = np.unique(key, return_inverse=True)
    _, signature = np.unique(keys // program.n_ranks // n_stages**2, return_inverse=True)
    of_node = np.full(len(slot), -1, np.int32)
    of_node[rows] = of
    stage = (keys // program.n_ranks) % n_stages**2 // n_stages
    return Classes(
        of_node, (keys % program.n_ranks).astype(np.int32), stage.astype(np.int32), signature.astype(np.int32)
    )
