"""What the registry knows of a schedule, and the checks that schedules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Program, RankOrder
from explorer.errors import ScheduleError, shown

MOST_PAIRS = 4_000_000  # of stage and micro-batch: up to 12 million actions, 2 GB while they are checked


@dataclass(frozen=True)
class Recipe:
    """A schedule by name: numbers → Program.

    Attributes:
        name: in the registry.
        title: as a person writes it.
        build: makes the program; keyword arguments `n_ranks`, `n_micro_batches`, `n_chunks` and those in `options`.
        needs: in one line, which numbers it exists for.
        n_chunks: stages a rank unless asked for otherwise.
        any_chunks: whether more or fewer than that are possible.
        options: names of further arguments.
        trains: whether it runs backward.
        weight_copies: how many times a rank's share of the weights each rank keeps: a number for all, or a function
            of n_ranks that gives (n_ranks,) of them.
        holds: the most that rank r holds for backward, as a formula in P, M, v; "" where it has none.
    """

    name: str
    title: str
    build: Callable[..., Program]
    needs: str
    n_chunks: int = 1
    any_chunks: bool = False
    options: tuple[str, ...] = ()
    trains: bool = True
    weight_copies: int | Callable[[int], npt.NDArray[np.int64]] = 1
    holds: str = ""

    def copies_per_rank(self, n_ranks: int) -> npt.NDArray[np.int64]:
        """(n_ranks,) how many times its share of the weights each rank keeps."""
        if callable(self.weight_copies):
            return self.weight_copies(n_ranks)
        return np.full(n_ranks, self.weight_copies, np.int64)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.build.__doc__ or "").strip().split("\n")[0]


def check_counts(**counts: int) -> None:
    """Refuse counts that are not whole numbers of at least 1.

    Raises:
        ScheduleError: naming the argument and the nearest legal value.
    """
    for name, count in counts.items():
        whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
        if not whole or count < 1:
            raise ScheduleError(
                f"{name} is a whole number of at least 1; got {shown(count)}; try 1", argument=name, legal=(1,)
            )


def check_size(*, n_ranks: int, n_micro_batches: int, n_chunks: int) -> None:
    """Refuse a program that no memory would hold.

    Raises:
        ScheduleError: with the most micro-batches there can be.
    """
    n_stages = n_ranks * n_chunks
    if n_stages * n_micro_batches > MOST_PAIRS:
        most = MOST_PAIRS // n_stages
        advice = f"try {most} micro-batches" if most else "try fewer ranks or chunks"
        raise ScheduleError(
            f"a program has at most {MOST_PAIRS:,} pairs of stage and micro-batch; got {_counted(n_stages)} stages and "
            f"{_counted(n_micro_batches)} micro-batches; {advice}",
            argument="n_micro_batches" if most else "n_ranks",
            legal=(most,) if most else (),
        )


def _counted(n: int) -> str:
    return f"{n:,}" if n < 10**15 else shown(n)


def one_stage_a_rank(name: str, n_chunks: int, *, instead: str) -> None:
    """Refuse chunks where a schedule has none.

    Raises:
        ScheduleError: with 1 as the legal value, and the schedule that does have chunks.
    """
    _check_chunks(n_chunks, 1, f"{name} runs one stage a rank", f", or {instead}")


def two_stages_a_rank(name: str, n_chunks: int) -> None:
    """Refuse any number of chunks but the two of a V.

    Raises:
        ScheduleError: with 2 as the legal value.
    """
    _check_chunks(n_chunks, 2, f"{name} runs two stages a rank, there and back", "")


def _check_chunks(n_chunks: int, only: int, rule: str, instead: str) -> None:
    check_counts(n_chunks=n_chunks)
    if n_chunks != only:
        raise ScheduleError(
            f"{rule}, so n_chunks is {only}; got {shown(n_chunks)}; try {only}{instead}",
            argument="n_chunks",
            legal=(only,),
        )


def one_stage_order(stage: int, kinds: npt.NDArray[np.int8]) -> RankOrder:
    """The order of a rank with one stage: `kinds` in turn, each kind through the micro-batches from 0 on."""
    micro_batch = np.empty(len(kinds), np.int32)
    for kind in np.flatnonzero(np.bincount(kinds)):
        rows = np.flatnonzero(kinds == kind)
        micro_batch[rows] = np.arange(len(rows))
    return RankOrder(kinds, np.full(len(kinds), stage, np.int32), micro_batch)


def warm_up_then_alternate(n_actions: int, warm_up: int) -> npt.NDArray[np.int8]:
    """(2 · n_actions,) kinds: `warm_up` forwards, then a forward and a backward in turn, then the backwards left."""
    kinds = np.full(2 * n_actions, Kind.B, np.int8)
    kinds[:warm_up] = kinds[warm_up : 2 * n_actions - warm_up : 2] = Kind.F
    return kinds
