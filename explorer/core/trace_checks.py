"""What the tables of a trace must hold before anything is worked out from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core.events import Events, MemoryChanges
from explorer.core.program import Program
from explorer.errors import InputError

_TIMES = ("start", "end", "wait")


def check_tables(events: object, memory: object, program: object) -> None:
    """Refuse what is no table of this program's: other values, times that are not finite, ranks that are not there.

    Raises:
        InputError: naming the column and the first such row.
    """
    for value, kind, name, make in (
        (events, Events, "events", "explorer.Events.of(…)"),
        (memory, MemoryChanges, "memory", "explorer.core.MemoryChanges.of(…)"),
        (program, Program, "program", "explorer.schedule(…)"),
    ):
        if not isinstance(value, kind):
            raise InputError(
                f"a trace's {name} are of {kind.__name__}; got {type(value).__name__}; make them with {make}",
                argument=name,
            )
    if isinstance(events, Events) and isinstance(memory, MemoryChanges) and isinstance(program, Program):
        _check_times("events", {name: getattr(events, name) for name in _TIMES})
        _check_times("memory", {"time": memory.time})
        _check_ranks("events", events.rank, program.n_ranks)
        _check_ranks("memory", memory.rank, program.n_ranks)


def _check_times(table: str, columns: dict[str, npt.NDArray[Any]]) -> None:
    for name, column in columns.items():
        # the least and the most tell of both, quicker than looking at each: what is not a number passes through
        if len(column) and not (np.isfinite(column.min()) and np.isfinite(column.max())):
            row = int(np.flatnonzero(~np.isfinite(column))[0])
            raise InputError(
                f"times of a trace are finite seconds; got {column[row]} as {name} in row {row:,} of its {table}; "
                "leave such rows out",
                argument=table,
            )


def _check_ranks(table: str, rank: npt.NDArray[Any], n_ranks: int) -> None:
    if len(rank) and not (rank.min() >= 0 and rank.max() < n_ranks):
        row = int(np.flatnonzero((rank < 0) | (rank >= n_ranks))[0])
        raise InputError(
            f"ranks of a trace are its program's, from 0 to {n_ranks - 1}; got {rank[row]} in row {row:,} of "
            f"its {table}; correct it, or give the program that ran",
            argument=table,
        )
