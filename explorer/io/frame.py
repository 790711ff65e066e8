"""A table with a row an action → Program; the way back is `Program.to_frame`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.core import PER_STAGE_KINDS, Kind, Placement, Program
from explorer.core.inference import inferred
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("rank", "slot", "kind", "stage", "micro_batch")
_MOST_ROWS = 20_000_000
_MOST_RANKS = 65_536
_KINDS = {kind.name: int(kind) for kind in Kind}


def from_frame(frame: pd.DataFrame, *, name: str = "own") -> Program:
    """The program that a table writes, a row an action.

    Rows may come in any order. Slots order the actions of a rank and may have gaps, which mean nothing; actions with
    one slot begin together. How many stages and micro-batches there are, and where, is what the rows show.

    Args:
        frame: columns ``rank``, ``slot``, ``kind`` (F, B, I, W, SEND_F …), ``stage``, ``micro_batch`` (empty or −1 for
            G and U) and, where sequences are cut, ``segment``; others are ignored.
        name: of the program.

    Raises:
        InputError: if a column is missing, or a value of it cannot be; it names the row.
        ProgramError: if the rows say nothing of a whole program.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
        >>> print(ex.from_frame(program.to_frame()))
        rank 0: 0F0 0F1 0B0 0B1
        rank 1: 1F0 1B0 1F1 1B1
    """
    _check_table(frame)
    kind = _kinds(frame)
    columns = {column: _whole(frame, column) for column in ("rank", "slot", "stage")}
    per_stage = np.isin(kind, PER_STAGE_KINDS)
    micro_batch = _whole(frame, "micro_batch", may_lack=per_stage)
    segment = _whole(frame, "segment") if "segment" in frame.columns else np.zeros(len(frame), np.int64)
    n_ranks = _count_ranks(frame, columns["rank"])
    row = np.lexsort((columns["slot"], columns["rank"]))
    rank, slot = columns["rank"][row], columns["slot"][row]
    begins = np.ones(len(row), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (slot[1:] != slot[:-1])
    slot_offsets = np.append(np.flatnonzero(begins), len(row)).astype(np.int64)
    return inferred(
        Program(
            name=str(name),
            placement=Placement.looped(n_ranks),
            n_micro_batches=1,
            kind=kind[row],
            stage=columns["stage"][row].astype(np.int32),
            micro_batch=micro_batch[row].astype(np.int32),
            segment=segment[row].astype(np.int32),
            peer=np.full(len(row), -1, np.int32),
            slot_offsets=slot_offsets,
            rank_offsets=np.searchsorted(rank[begins], np.arange(n_ranks + 1)).astype(np.int64),
        )
    )


def _check_table(frame: object) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"a table is a pandas DataFrame; got {type(frame).__name__}; try pandas.DataFrame(…)", argument="frame"
        )
    lacks = [column for column in _NEEDED if column not in frame.columns]
    if lacks:
        came = ", ".join(map(str, frame.columns))[:80] or "none"
        raise InputError(
            f"a table of a program has the columns {', '.join(_NEEDED)}; got {came}; add {lacks[0]}", argument="frame"
        )
    twice = [column for column in (*_NEEDED, "segment") if list(frame.columns).count(column) > 1]
    if twice:
        raise InputError(f"a column is there once; got {twice[0]} again; rename one of them", argument="frame")
    if not 0 < len(frame) <= _MOST_ROWS:
        raise InputError(
            f"a table of a program has 1 to {_MOST_ROWS:,} rows; got {len(frame):,}; try fewer micro-batches",
            argument="frame",
        )


def _kinds(frame: pd.DataFrame) -> npt.NDArray[np.int8]:
    code = frame["kind"].astype(object).map(lambda kind: _KINDS.get(kind) if isinstance(kind, str) else None)
    if code.isna().any():
        raise _refused(frame, "kind", int(np.flatnonzero(code.isna())[0]), f"one of {', '.join(_KINDS)}")
    return np.asarray(code, np.int8)


def _whole(frame: pd.DataFrame, column: str, *, may_lack: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
    """The column as whole numbers from 0 on; where `may_lack`, nothing and −1 are −1."""
    import pandas as pd

    cells = frame[column]
    if cells.dtype == object:  # lists and the like are no numbers, nor can they be looked at as such
        cells = cells.map(lambda cell: cell if isinstance(cell, (str, int, float, np.number)) else None)
    values: npt.NDArray[Any] = np.asarray(pd.to_numeric(cells, errors="coerce"), np.float64)
    if may_lack is not None:
        values = np.where(may_lack & (np.isnan(values) | (values == -1)), -1, values)
    good = (values >= 0) & (values < 2**31) & (values == np.floor(values))
    if may_lack is not None:
        good |= may_lack & (values == -1)
    if not good.all():
        raise _refused(frame, column, int(np.flatnonzero(~good)[0]), "a whole number of at least 0")
    return values.astype(np.int64)


def _count_ranks(frame: pd.DataFrame, rank: npt.NDArray[np.int64]) -> int:
    present = np.unique(rank)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if len(gaps):
        row = int(np.flatnonzero(rank == present[gaps[0]])[0])
        raise _refused(frame, "rank", row, f"numbered from 0 without a gap, and there is no rank {gaps[0]}")
    if len(present) > _MOST_RANKS:
        raise InputError(
            f"a program has at most {_MOST_RANKS:,} ranks; got {len(present):,}; try fewer", argument="frame"
        )
    return len(present)


def _refused(frame: pd.DataFrame, column: str, row: int, rule: str) -> InputError:
    came = str(frame[column].iloc[row])[:40]
    label = frame.index[row]
    return InputError(f"{column} is {rule}; got {came!r} in row {label!s}; correct that row", argument="frame")
