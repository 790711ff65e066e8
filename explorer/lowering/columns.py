"""Programs cut into rows and put together again, without an object for each action."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from explorer.core import Program, Waits

Indices = npt.NDArray[np.int64]


def rebuilt(
    program: Program,
    columns: dict[str, npt.NDArray[np.int32]],
    *,
    slot: Indices,
    rank: npt.NDArray[np.int32],
    moved: Indices,
) -> Program:
    """`program` with other rows.

    Args:
        program: whose name, placement, waits and capacities stay.
        columns: kind, stage, micro_batch, segment and peer of the rows, in order.
        slot: (n_rows,) rising number of the slot of each row; equal neighbours share one.
        rank: (n_rows,) rank of each row.
        moved: (n_actions,) where each row of `program` went, for its waits.
    """
    first = np.ones(len(slot), np.bool_)
    first[1:] = slot[1:] != slot[:-1]
    starts = np.flatnonzero(first)
    counts = np.bincount(rank[starts], minlength=program.n_ranks)
    waits = program.waits
    return replace(
        program,
        kind=columns["kind"].astype(np.int8),
        stage=columns["stage"].astype(np.int32),
        micro_batch=columns["micro_batch"].astype(np.int32),
        segment=columns["segment"].astype(np.int32),
        peer=columns["peer"].astype(np.int32),
        slot_offsets=np.append(starts, len(slot)).astype(np.int64),
        rank_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        waits=None if waits is None else Waits(moved[waits.after], moved[waits.before], waits.lag),
    )


def reordered(program: Program, rows: Indices, slot: Indices) -> Program:
    """`program` with its rows in another order of slots; each stays on its rank.

    Args:
        program: to reorder.
        rows: (n_actions,) the rows in their new order.
        slot: (n_actions,) rising number of the slot of each of them; equal neighbours share one.
    """
    columns = {name: getattr(program, name)[rows] for name in ("kind", "stage", "micro_batch", "segment", "peer")}
    moved = np.empty(program.n_actions, np.int64)
    moved[rows] = np.arange(program.n_actions)
    return rebuilt(program, columns, slot=slot, rank=program.rank_of_action[rows], moved=moved)
