"""The CSV in which torch's pipeline schedules export their order: a row a rank, a slot a cell.

    0F0,0F1,,0B0,0B1              stage, kind, micro-batch; an empty cell is an idle slot
    1F0,1B0,(1F1;2B0)OVERLAP_F_B  a forward and a backward as one
    0SEND_F0,0RECV_B0,0REDUCE_GRAD,0UNSHARD

Torch's REDUCE_GRAD is our G. UNSHARD and RESHARD say when FSDP gathers a stage's weights, which no program here
holds: they are left out, and a warning says so. Zero-bubble code writes BW for B. R, U and segments (``0F1.2``) are
ours alone; torch has no word for them, nor for a message past the next stage, which we write with the rank at its
other end: ``0SEND_F0@3``.

Source: torch 2.13, distributed/pipelining/schedules.py, `_Action.from_str` and `_dump_csv`.
"""

from __future__ import annotations

import csv
import re
import warnings
from io import StringIO
from itertools import pairwise

import numpy as np

from explorer.core import COMPUTE_KINDS, Kind, Program
from explorer.core.inference import inferred
from explorer.core.words import MOST_RANKS, program_of_words
from explorer.errors import InputError
from explorer.io.loss import warn_of_loss

MOST_CELLS = 1_000_000
_TITLES = 64  # cells of the first row that may be titles of a table
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
    n_ranks = text.rstrip().count("\n") + 1
    if n_ranks > MOST_RANKS:
        raise InputError(
            f"an order has a row for each rank, at most {MOST_RANKS:,}; got {n_ranks:,} in {file}; try fewer ranks",
            argument="path",
        )
    rows = _rows(text, file)
    orders = [_words(row) for row in rows]
    while orders and not orders[-1]:
        orders.pop()  # lines behind the last rank
    if not orders:
        raise InputError(f"an order has a row for each rank; got none in {file}; try 0F0,0B0", argument="path")
    n_left_out = sum(map(len, orders))
    if "SHARD" in text:
        orders = [[word for word in order if not _SHARDING.fullmatch(word)] for order in orders]
    if n_left_out := n_left_out - sum(map(len, orders)):
        warnings.warn(
            f"{file}: {n_left_out} cells of UNSHARD and RESHARD are left out; a program holds no sharding",
            stacklevel=4,
        )
    return inferred(
        program_of_words(
            name, orders, lambda row, place: _unread(rows[row], orders[row][place], f"{file}, line {row + 1}")
        )
    )


def _rows(text: str, file: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"an order is plain CSV; got {file}, in which {error}; try 0F0,0B0", argument="path") from None
    if rows and {"rank", "kind"} <= {cell.strip().lower() for cell in rows[0][:_TITLES]}:
        raise InputError(
            f"an order has a row for each rank and no titles; got a table in {file}; "
            f"try explorer.from_frame(pandas.read_csv({file!r}))",
            argument="path",
        )
    return rows


def _words(row: list[str]) -> list[str]:
    """The cells of a row that are not empty, in this package's own spelling."""
    words = list(filter(None, map(str.strip, row)))
    line = "".join(words)
    if _REDUCE in line:
        words = [word.replace(_REDUCE, Kind.G.name) for word in words]
    return [_FULL.sub(r"\1B", word) for word in words] if "BW" in line else words


def _unread(row: list[str], word: str, line: str) -> InputError:
    """The refusal of the first cell of `row` that is spelled as `word`."""
    column = next(column for column, cell in enumerate(row, 1) if word in _words([cell]))
    return InputError(
        f"a cell reads <stage><kind><micro-batch>, like 2F5, or (2F1;1B0)OVERLAP_F_B; got "
        f"{row[column - 1].strip()[:_SHOWN]!r} in {line}, column {column}; the kinds are "
        f"{', '.join(kind.name for kind in Kind)} and torch's {_REDUCE}, UNSHARD, RESHARD; commas stand between cells",
        argument="path",
    )


def write_order(program: Program) -> str:
    """`program` as such a CSV; rows end with CR and LF, as torch's do."""
    warn_of_loss(program, "a CSV")
    words = _torch_words(program)
    cells = [_cell(words, *ends) for ends in pairwise(program.slot_offsets.tolist())]
    return "".join(",".join(cells[first:last]) + "\r\n" for first, last in pairwise(program.rank_offsets.tolist()))


def _torch_words(program: Program) -> list[tuple[str, bool]]:
    """Each action as text, and whether it computes."""
    words, computes = program.words(), np.isin(program.kind, COMPUTE_KINDS).tolist()
    for index in np.flatnonzero(program.kind == Kind.G).tolist():
        words[index] = words[index].replace(Kind.G.name, _REDUCE)
    return list(zip(words, computes, strict=True))


def _cell(words: list[tuple[str, bool]], first: int, last: int) -> str:
    if last == first + 1:
        return words[first][0]
    parts = words[first:last]
    ending = "OVERLAP_F_B" if all(computes for _, computes in parts) else ""
    return f"({';'.join(word for word, _ in parts)}){ending}"
