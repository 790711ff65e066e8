"""Which rank runs which stage, for which micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from explorer.errors import InputError, shown

_MOST = 20_000_000  # stages or micro-batches


@dataclass(frozen=True, eq=False)
class Placement:
    """The rank of every (stage, micro-batch).

    Micro-batches follow one of a few *routes* over the ranks. Looped and V-shaped pipelines have one route;
    bidirectional ones have two, and then a stage has a weight copy on each rank that runs it.

    Attributes:
        n_ranks: number of pipeline ranks.
        routes: (n_routes, n_stages) int32, the rank of each stage along each route.
        route_of: (n_micro_batches,) int32, the route of each micro-batch; None if there is but one.
    """

    n_ranks: int
    routes: npt.NDArray[np.int32]
    route_of: npt.NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.routes.ndim != 2 or self.routes.size == 0:
            raise InputError(f"routes must be of shape (n_routes, n_stages); got {self.routes.shape}")
        if self.routes.min() < 0 or self.routes.max() >= self.n_ranks:
            raise InputError(f"routes must name ranks 0 to {self.n_ranks - 1}; got {shown(self.routes.tolist())}")
        if self.route_of is None:
            if len(self.routes) != 1:
                raise InputError(f"{len(self.routes)} routes need route_of, the route of each micro-batch; got None")
        elif self.route_of.size and not (0 <= self.route_of.min() and self.route_of.max() < len(self.routes)):
            raise InputError(
                f"route_of must name routes 0 to {len(self.routes) - 1}; got {shown(self.route_of.tolist())}"
            )

    @classmethod
    def looped(cls, n_ranks: int, n_chunks: int = 1) -> Placement:
        """Stage s on rank s mod n_ranks: with one chunk a straight line, with more a loop."""
        _check_count("n_ranks", n_ranks)
        _check_count("n_chunks", n_chunks)
        _check_size(n_ranks * n_chunks, "stages")
        return cls(n_ranks, np.tile(np.arange(n_ranks, dtype=np.int32), n_chunks)[None])

    @classmethod
    def v_shaped(cls, n_ranks: int) -> Placement:
        """Two stages a rank, there and back: rank 0 has the first stage and the last."""
        _check_count("n_ranks", n_ranks)
        _check_size(2 * n_ranks, "stages")
        there = np.arange(n_ranks, dtype=np.int32)
        return cls(n_ranks, np.concatenate([there, there[::-1]])[None])

    @classmethod
    def bidirectional(cls, n_ranks: int, n_micro_batches: int) -> Placement:
        """One stage a rank and direction; the second half of the micro-batches travels from the last rank."""
        _check_count("n_ranks", n_ranks)
        _check_count("n_micro_batches", n_micro_batches)
        _check_size(n_ranks, "ranks")
        _check_size(n_micro_batches, "micro-batches")
        there = np.arange(n_ranks, dtype=np.int32)
        route_of = (np.arange(n_micro_batches) >= (n_micro_batches + 1) // 2).astype(np.int32)
        return cls(n_ranks, np.stack([there, there[::-1]]), route_of)

    def _check_types(self) -> None:
        _check_count("n_ranks", self.n_ranks)
        for name, value in (("routes", self.routes), ("route_of", self.route_of)):
            absent = value is None and name == "route_of"
            if not absent and not (isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.integer)):
                came = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
                raise InputError(
                    f"{name} must be a numpy array of whole numbers; got {came}; try numpy.array(…, numpy.int32)",
                    argument=name,
                )
        if self.route_of is not None and self.route_of.ndim != 1:
            raise InputError(
                f"route_of must be of shape (n_micro_batches,); got {self.route_of.shape}; try one route a micro-batch",
                argument="route_of",
            )

    @property
    def n_stages(self) -> int:
        """Number of stages of the model."""
        return int(self.routes.shape[1])

    @cached_property
    def weight_copies(self) -> npt.NDArray[np.int64]:
        """(n_stages,) number of ranks that hold each stage's weights."""
        return np.array([len(np.unique(column)) for column in self.routes.T])

    def rank_of(self, stage: npt.ArrayLike, micro_batch: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """The rank that runs `stage` for `micro_batch`; both broadcast. A micro-batch of −1 takes route 0."""
        if self.route_of is None:
            return np.asarray(self.routes[0][np.asarray(stage)], np.int32)
        micro_batch = np.asarray(micro_batch)
        route = np.where(micro_batch < 0, 0, self.route_of[micro_batch])
        return np.asarray(self.routes[route, np.asarray(stage)], np.int32)

    def holds(self, rank: npt.ArrayLike, stage: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each `rank` has a weight copy of each `stage`; both broadcast."""
        return np.asarray((self.routes[:, np.asarray(stage)] == np.asarray(rank)).any(axis=0))


def _check_count(argument: str, count: object) -> None:
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if not whole or count < 1:  # type: ignore[operator]
        came = shown(count) if isinstance(count, (int, float, str)) else type(count).__name__
        raise InputError(
            f"{argument} is a whole number of at least 1; got {came}; try 1", argument=argument, legal=(1,)
        )


def _check_size(count: int, what: str) -> None:
    if count > _MOST:
        raise InputError(f"a placement has at most {_MOST:,} {what}; got {count:,}; try fewer")
