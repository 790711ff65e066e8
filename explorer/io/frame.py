"""A table with a row an action → Program; the way back is `Program.to_frame`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.core import MESSAGE_KINDS, PER_STAGE_KINDS, Kind, Placement, Program, check
from explorer.core.inference import inferred
from explorer.core.words import MOST_RANKS
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("rank", "slot", "kind", "stage", "micro_batch")
_MOST_ROWS = 2_000_000
_KINDS = {kind.name: int(kind) for kind in Kind}


def from_frame(frame: pd.DataFrame, *, name: str = "own") -> Program:
    """The program that a table writes, a row an action, checked.

    Rows may come in any order. Slots order the actions of a rank and may have gaps, which mean nothing; actions with
    one slot begin together. How many stages and micro-batches there are, and where, is what the rows show.

    Args:
        frame: columns ``rank``, ``slot``, ``kind`` (F, B, I, W, SEND_F …), ``stage``, ``micro_batch`` (empty or −1 for
            G and U) and, where sequences are cut, ``segment``; where messages pass over a stage, ``peer``, the rank
            at their other end (empty or −1 for the others); further columns are ignored. Its `attrs` may hold
            ``waits`` as `Program.with_waits` takes them, ``capacities`` and ``weight_versions``.
        name: of the program.

    Raises:
        InputError: if a column is missing, or a value of it cannot be; it names the row.
        ProgramError: if an action is missing, doubled, misplaced or out of range.
        CircularWaitError: if actions wait for each other in a circle.

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
    optional = {
        "segment": _whole(frame, "segment") if "segment" in frame.columns else np.zeros(len(frame), np.int64),
        "peer": _peers(frame, kind) if "peer" in frame.columns else np.full(len(frame), -1),
    }
    n_ranks = _count_ranks(frame, columns["rank"])
    place = columns["rank"] << 32 | columns["slot"]
    row = np.argsort(place, kind="stable")
    begins = np.ones(len(row), np.bool_)
    begins[1:] = place[row][1:] != place[row][:-1]
    ranks = np.arange(n_ranks + 1)
    program = Program(
        name=str(name),
        placement=Placement.looped(n_ranks),
        n_micro_batches=1,
        kind=kind[row],
        stage=columns["stage"][row].astype(np.int32),
        micro_batch=micro_batch[row].astype(np.int32),
        segment=optional["segment"][row].astype(np.int32),
        peer=optional["peer"][row].astype(np.int32),
        slot_offsets=np.append(np.flatnonzero(begins), len(row)).astype(np.int64),
        rank_offsets=np.searchsorted(columns["rank"][row][begins], ranks).astype(np.int64),
    )
    return check(_with_extras(inferred(program), frame.attrs))


def _with_extras(program: Program, attrs: Mapping[Any, Any]) -> Program:
    """`program` with the waits, capacities and weight versions among `attrs`."""
    capacities, versions = (_counts(name, attrs.get(name)) for name in ("capacities", "weight_versions"))
    program = replace(program, capacities=capacities, weight_versions=versions)
    waits = attrs.get("waits")
    if waits is None:
        return program
    if isinstance(waits, str) or not isinstance(waits, Sequence):
        raise InputError(
            f"waits in a table's attrs are a list of (action, action, seconds); got {type(waits).__name__}; "
            'try [("1F0", "0F1", 0.5)]',
            argument="frame",
        )
    return program.with_waits(*waits)


def _counts(name: str, values: Any) -> npt.NDArray[np.int64] | None:
    if values is None:
        return None
    whole = isinstance(values, (Sequence, np.ndarray)) and all(isinstance(n, (int, np.integer)) for n in values)
    if not whole or not all(0 <= n < 2**31 for n in values):
        raise InputError(
            f"{name} in a table's attrs are whole numbers of at least 0; got {str(values)[:40]}; try [1, 1]",
            argument="frame",
        )
    return np.asarray(values, np.int64)


def _peers(frame: pd.DataFrame, kind: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """The rank at the other end of each message; −1 where none is named."""
    peer = _whole(frame, "peer", may_lack=np.ones(len(frame), np.bool_))
    wrong = np.flatnonzero((peer >= 0) & ~np.isin(kind, MESSAGE_KINDS))
    if len(wrong):
        raise _refused(frame, "peer", int(wrong[0]), "of sends and receives only, and empty or −1 for the others")
    return peer


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
    twice = [column for column in (*_NEEDED, "segment", "peer") if list(frame.columns).count(column) > 1]
    if twice:
        raise InputError(f"a column is there once; got {twice[0]} again; rename one of them", argument="frame")
    if not 0 < len(frame) <= _MOST_ROWS:
        raise InputError(
            f"a table of a program has 1 to {_MOST_ROWS:,} rows; got {len(frame):,}; try fewer micro-batches",
            argument="frame",
        )


def _kinds(frame: pd.DataFrame) -> npt.NDArray[np.int8]:
    import pandas as pd

    names: Any = frame["kind"].astype(object)
    try:
        number, found = pd.factorize(names)  # a few names, each looked up once; −1 for nothing
    except TypeError:  # lists and the like
        number, found = np.arange(len(names)), names
    codes = [_KINDS.get(kind, -1) if isinstance(kind, str) else -1 for kind in found]
    code = np.array([*codes, -1], np.int8)[number]
    if (code < 0).any():
        raise _refused(frame, "kind", int(np.flatnonzero(code < 0)[0]), f"one of {', '.join(_KINDS)}")
    return code


def _whole(frame: pd.DataFrame, column: str, *, may_lack: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
    """The column as whole numbers from 0 on; where `may_lack`, nothing and −1 are −1."""
    import pandas as pd

    cells = frame[column]
    try:
        values: npt.NDArray[Any] = np.asarray(pd.to_numeric(cells, errors="coerce"), np.float64)
    except TypeError:  # lists and the like are no numbers, nor can they be looked at as such
        cells = cells.map(lambda cell: cell if isinstance(cell, (str, int, float, np.number)) else None)
        values = np.asarray(pd.to_numeric(cells, errors="coerce"), np.float64)
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
    if len(present) > MOST_RANKS:
        raise InputError(
            f"a program has at most {MOST_RANKS:,} ranks; got {len(present):,}; try fewer", argument="frame"
        )
    return len(present)


def _refused(frame: pd.DataFrame, column: str, row: int, rule: str) -> InputError:
    came = str(frame[column].iloc[row])[:40]
    label = frame.index[row]
    return InputError(f"{column} is {rule}; got {came!r} in row {str(label)[:40]}; correct that row", argument="frame")
