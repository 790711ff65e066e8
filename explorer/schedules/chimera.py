"""Chimera: pipelines in both directions over the same ranks, each filling the other's bubble."""

from __future__ import annotations

import numpy as np

from explorer.core import Placement, Program
from explorer.errors import ScheduleError, shown
from explorer.schedules.clocked import by_clock
from explorer.schedules.limits import check_fits
from explorer.schedules.recipe import check_counts, one_stage_a_rank


def chimera(*, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, n_replicas: int = 2) -> Program:
    """Half of the micro-batches from the first rank, half from the last: half the bubble for twice the weights.

        rank 0  0F0 0F1  .  3F2 3B2 3F3 3B3 0B0  .  0B1      first stage of 0 and 1, last of 2 and 3
        rank 1   .  1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1  .
        rank 2   .  1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3  .
        rank 3  0F2 0F3  .  3F0 3B0 3F1 3B1 0B2  .  0B3      last stage of 0 and 1, first of 2 and 3

    Every stage has a copy of its weights on n_replicas ranks, and gradients are summed over them. Each P micro-batches
    form a unit, and units follow each other directly; the last may be smaller. With F = B and M a multiple of P the
    makespan is 2M + 2P/n_replicas − 2 times F, so the bubble of two replicas is (P−2)/(2M+P−2) of the whole, and a
    rank holds between P − P/n_replicas + 1 and P micro-batches. With B = 2F every unit leaves a gap of its own: for two
    replicas the makespan is 3M + (M/P+1)(P−2) times F. Doubled forwards and halved backwards, which would fill it, are
    not in this order.

    Args:
        n_ranks: even.
        n_micro_batches: any; a multiple of n_ranks fills the pipelines.
        n_chunks: 1; a rank runs n_replicas stages, one a pipeline.
        n_replicas: pipelines, half of them each way: even, and a divisor of n_ranks.

    Raises:
        ScheduleError: if a number is not among these.

    Source: Li and Hoefler 2021, Chimera, arXiv:2107.06925, sections 3.1, 3.5 and 3.6, tables 2 and 3; f there is
        n_replicas / 2.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_replicas=n_replicas)
    one_stage_a_rank("chimera", n_chunks, instead="n_replicas")
    check_fits("Chimera", "n_ranks to be even", f"{n_ranks}", argument="n_ranks", value=n_ranks, fits=_is_even)
    _check_replicas(n_ranks, n_replicas)
    unit, within = np.divmod(np.arange(n_micro_batches), n_ranks)
    in_unit = np.minimum(n_ranks, n_micro_batches - unit * n_ranks)
    pipeline, turn = np.divmod(within, -(-in_unit // n_replicas))
    placement = Placement(n_ranks, _routes(n_ranks, n_replicas), pipeline.astype(np.int32))
    # a second micro-batch two ticks later leaves every other tick to the opposite direction
    return by_clock("chimera", placement, 2 * turn + 2 * n_ranks * unit)


def _routes(n_ranks: int, n_replicas: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """(n_replicas, n_ranks): pairs of a way down and the same way up, each pair begun 2P/n_replicas ranks further."""
    ranks = np.arange(n_ranks, dtype=np.int32)
    step = 2 * n_ranks // n_replicas
    down = [np.roll(ranks, -pair * step) for pair in range(n_replicas // 2)]
    return np.array([route for way in down for route in (way, way[::-1])], np.int32)


def _is_even(n: int) -> bool:
    return n % 2 == 0


def _check_replicas(n_ranks: int, n_replicas: int) -> None:
    legal = [n for n in range(2, n_ranks + 1, 2) if n_ranks % n == 0]
    if n_replicas not in legal:
        nearest = tuple(sorted(legal, key=lambda n: abs(n - n_replicas))[:2])
        raise ScheduleError(
            f"Chimera needs n_replicas to be even and a divisor of n_ranks; got {shown(n_replicas)} and {n_ranks}; "
            f"try {' or '.join(map(str, nearest))}",
            argument="n_replicas",
            legal=nearest,
        )
