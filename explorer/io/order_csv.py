"""The CSV in which torch's pipeline schedules export their order: a row a rank, a slot a cell.

    0F0,0F1,,0B0,0B1              stage, kind, micro-batch; an empty cell is an idle slot
    1F0,1B0,(1F1;2B0)OVERLAP_F_B  a forward and a backward as one
    0SEND_F0,0RECV_B0,0REDUCE_GRAD,0UNSHARD

Torch's REDUCE_GRAD is our G. UNSHARD and RESHARD say when FSDP gathers a stage's weights, which no program here
holds: they are left out, and a warning says so. Zero-bubble code writes BW for B. R, U and segments (``0F1.2``) are
ours alone; torch has no word for them.

Source: torch 2.13, distributed/pipelining/schedules.py, `_Action.from_str` and `_dump_csv`.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator
from io import StringIO
from itertools import pairwise

import numpy as np

from explorer.core import COMPUTE_KINDS, MESSAGE_KINDS, Action, Kind, Overlap, Placement, Program
from explorer.core.action import parse_slot
from explorer.core.inference import inferred
from explorer.errors import InputError

MOST_CELLS = 1_000_000
_REDUCE = "REDUCE_GRAD"
_SHARDING = re.compile(r"[0-9]+(UNSHARD|RESHARD)")
_FULL = re.compile(r"([0-9])BW(?=[0-9])")  # zero-bubble code's word for our B; its own B would be our I
_SHOWN = 40  # characters of a cell that came


def read_order(text: str, name: str, file: str) -> Program:
    """The program that `text` writes, not yet checked.

    Args:
        text: of the CSV.
        name: of the program.
        file: as messages call it.

    Raises:
        InputError: if a cell names no action, with line and column, or there are too many.
        ProgramError: if the orders say nothing of a whole program.
    """
    n_cells = text.count(",") + text.count("\n") + 1
    if n_cells > MOST_CELLS:
        raise InputError(
            f"an order has at most {MOST_CELLS:,} cells; got {n_cells:,} in {file}; try fewer micro-batches",
            argument="path",
        )
    left_out: list[str] = []
    orders = [list(_slots(row, f"{file}, line {line}", left_out)) for line, row in enumerate(_rows(text, file), 1)]
    while orders and not orders[-1]:
        orders.pop()  # lines behind the last rank
    if not orders:
        raise InputError(f"an order has a row for each rank; got none in {file}; try 0F0,0B0", argument="path")
    if left_out:
        warnings.warn(
            f"{file}: {len(left_out)} cells of UNSHARD and RESHARD are left out; a program holds no sharding",
            stacklevel=4,
        )
    return inferred(Program.from_orders(name, Placement.looped(len(orders)), 1, orders))


def _rows(text: str, file: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"an order is plain CSV; got {file}, in which {error}; try 0F0,0B0", argument="path") from None
    if rows and {"rank", "kind"} <= {cell.strip().lower() for cell in rows[0]}:
        raise InputError(
            f"an order has a row for each rank and no titles; got a table in {file}; "
            f"try explorer.from_frame(pandas.read_csv({file!r}))",
            argument="path",
        )
    return rows


def _slots(row: list[str], line: str, left_out: list[str]) -> Iterator[Action | Overlap]:
    for column, cell in enumerate(row, 1):
        word = cell.strip()
        if not word:
            continue
        if _SHARDING.fullmatch(word):
            left_out.append(word)
            continue
        try:
            yield parse_slot(_FULL.sub(r"\1B", word.replace(_REDUCE, Kind.G.name)))
        except InputError:
            raise InputError(
                f"a cell reads <stage><kind><micro-batch>, like 2F5, or (2F1;1B0)OVERLAP_F_B; got {word[:_SHOWN]!r} in "
                f"{line}, column {column}; the kinds are {', '.join(kind.name for kind in Kind)} and torch's "
                f"{_REDUCE}, UNSHARD, RESHARD; commas stand between cells",
                argument="path",
            ) from None


def write_order(program: Program) -> str:
    """`program` as such a CSV; rows end with CR and LF, as torch's do."""
    lost = {
        "waits": program.waits is not None and len(program.waits.after) > 0,
        "capacities": program.capacities is not None,
        "peers": bool(((program.peer >= 0) & (program.peer != _neighbour(program))).any()),
    }
    if any(lost.values()):
        named = " and ".join(name for name, there in lost.items() if there)
        warnings.warn(f"{program.name}: a CSV holds orders only; its {named} are left out", stacklevel=3)
    words = _words(program)
    cells = [_cell(words, *ends) for ends in pairwise(program.slot_offsets.tolist())]
    return "".join(",".join(cells[first:last]) + "\r\n" for first, last in pairwise(program.rank_offsets.tolist()))


def _words(program: Program) -> list[tuple[str, bool]]:
    """Each action as text, and whether it computes."""
    names = [_REDUCE if kind == Kind.G else kind.name for kind in Kind]
    computes = np.isin(program.kind, COMPUTE_KINDS).tolist()
    columns = (program.stage, program.kind, program.micro_batch, program.segment)
    texts = (
        f"{stage}{names[kind]}{'' if micro_batch < 0 else micro_batch}{f'.{segment}' if segment else ''}"
        for stage, kind, micro_batch, segment in zip(*(column.tolist() for column in columns), strict=True)
    )
    return list(zip(texts, computes, strict=True))


def _cell(words: list[tuple[str, bool]], first: int, last: int) -> str:
    if last == first + 1:
        return words[first][0]
    parts = words[first:last]
    ending = "OVERLAP_F_B" if all(computes for _, computes in parts) else ""
    return f"({';'.join(word for word, _ in parts)}){ending}"


def _neighbour(program: Program) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(n_actions,) the rank that a message goes to or comes from where nothing else is said; −1 for other kinds."""
    to_next = np.isin(program.kind, (Kind.SEND_F, Kind.RECV_B))
    stage = np.clip(program.stage + np.where(to_next, 1, -1), 0, program.n_stages - 1)
    inside = np.clip(program.micro_batch, 0, program.n_micro_batches - 1)
    rank = program.placement.rank_of(stage, inside)
    return np.where(np.isin(program.kind, MESSAGE_KINDS), rank, -1).astype(np.int64)
