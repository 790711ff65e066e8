"""Turns that torch's ranks spend on gathering and releasing parameters, while others go on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Program, kernel

Indices = npt.NDArray[np.int64]
_N_GATHERED = 3  # stages whose parameters torch holds gathered at a time


def turns_before(program: Program) -> Indices:
    """(n_slots,) turns that pass on a slot's rank before it, as torch's runtime lowers a program.

    One turn for each stage whose parameters are gathered (before it is among the next three stages that the rank
    runs) or released (once it no longer is), and one for each reduction of gradients, behind a stage's last backward.

    Source: torch.distributed.pipelining 2.13, schedules.py, _add_unshard_reshard and _add_reduce_grad.
    """
    gathered = np.full((program.n_slots, _N_GATHERED), -1, np.int64)
    _look_ahead(program.rank_offsets, program.slot_offsets, program.stage, program.n_stages, gathered)
    before = np.roll(gathered, 1, axis=0)
    before[program.rank_offsets[:-1][np.diff(program.rank_offsets) > 0]] = -1
    differs = gathered[:, :, None] != before[:, None, :]
    turns = ((gathered >= 0) & differs.all(axis=2)).sum(axis=1) + ((before >= 0) & differs.all(axis=1)).sum(axis=1)
    behind = _last_backwards(program) + 1
    behind = behind[~np.isin(behind, program.rank_offsets)]
    np.add.at(turns, behind, 1)
    return np.asarray(turns)


def _last_backwards(program: Program) -> Indices:
    """The slot of the last B or W of each stage on each of its ranks."""
    rows = np.flatnonzero((program.kind == Kind.B) | (program.kind == Kind.W))
    key = program.rank_of_action[rows] * program.n_stages + program.stage[rows]
    _, from_behind = np.unique(key[::-1], return_index=True)
    return np.asarray(program.slot_of_action[rows[::-1][from_behind]])


@kernel
def _look_ahead(
    rank_offsets: Indices, slot_offsets: Indices, stage: npt.NDArray[np.int32], n_stages: int, gathered: Indices
) -> None:
    """Write at each slot the first few stages that its rank runs from there on; −1 where there are fewer."""
    upcoming = np.empty(n_stages, np.int64)  # by when they run next, going backwards through the order
    for rank in range(len(rank_offsets) - 1):
        n_upcoming = 0
        for slot in range(rank_offsets[rank + 1] - 1, rank_offsets[rank] - 1, -1):
            for action in range(slot_offsets[slot + 1] - 1, slot_offsets[slot] - 1, -1):
                place = 0
                while place < n_upcoming and upcoming[place] != stage[action]:
                    place += 1
                n_upcoming = max(n_upcoming, place + 1)
                for k in range(place, 0, -1):
                    upcoming[k] = upcoming[k - 1]
                upcoming[0] = stage[action]
            for k in range(min(gathered.shape[1], n_upcoming)):
                gathered[slot, k] = upcoming[k]
