"""Micro-batches that go round a loop of ranks in groups, chunk by chunk."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Placement, Program, RankOrder
from explorer.schedules.recipe import warm_up_then_alternate

Indices = npt.NDArray[np.int64]


def in_rounds(group_size: int, n_micro_batches: int, n_chunks: int) -> tuple[Indices, Indices]:
    """Chunk and micro-batch of a rank's k-th forward: a group through its first chunk, then its second, and so on.

    The last group may be smaller. Backwards go the same way with the chunks counted from the end.
    """
    group, within = np.divmod(np.arange(n_micro_batches * n_chunks), group_size * n_chunks)
    size = np.minimum(group_size, n_micro_batches - group * group_size)
    chunk, place = np.divmod(within, size)
    return chunk, group * group_size + place


def one_f_one_b_in_rounds(
    name: str, *, n_ranks: int, n_micro_batches: int, n_chunks: int, group_size: int, lead: int
) -> Program:
    """A forward and a backward in turn, in rounds of `group_size` micro-batches.

    Rank r begins with lead·(P−1−r) + (v−1)·group_size forwards.
    """
    orders = []
    n_actions = n_micro_batches * n_chunks
    forward_chunk, round_of = in_rounds(group_size, n_micro_batches, n_chunks)
    for rank in range(n_ranks):
        warm_up = min(lead * (n_ranks - 1 - rank) + (n_chunks - 1) * group_size, n_actions)
        kinds = warm_up_then_alternate(n_actions, warm_up)
        chunk, micro_batch = (np.empty(2 * n_actions, np.int32) for _ in range(2))
        forward = kinds == Kind.F
        chunk[forward], chunk[~forward] = forward_chunk, n_chunks - 1 - forward_chunk
        micro_batch[forward] = micro_batch[~forward] = round_of
        orders.append(RankOrder(kinds, chunk * n_ranks + rank, micro_batch))
    return Program.from_columns(name, Placement.looped(n_ranks, n_chunks), n_micro_batches, orders)
