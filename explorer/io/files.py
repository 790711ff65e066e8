"""Files by their suffix, read within limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from explorer.core import Program, check
from explorer.errors import InputError, ProgramError
from explorer.io.order_csv import read_order, write_order

_LARGEST = 256 * 2**20  # bytes; a larger file is no order that could be drawn or run
_READERS: dict[str, Callable[[str, str, str], Program]] = {".csv": read_order}
_WRITERS: dict[str, Callable[[Program], str]] = {".csv": write_order}
_KNOWN = "an order as .csv, a row a rank, such as torch writes it"


def load(path: str | os.PathLike[str]) -> Program:
    """The program in the file at `path`, checked; the suffix says how it is written.

    ``.csv`` is the order that torch's pipeline schedules export: a row a rank, a slot a cell, with or without
    communication. Numbers of stages and micro-batches and the placement are what the order shows.

    Args:
        path: of a ``.csv`` file.

    Raises:
        InputError: if there is no such file, it is too large or not text, or a cell names no action; it names line
            and column.
        ProgramError: if an action is missing, doubled, misplaced or out of range.
        CircularWaitError: if actions wait for each other in a circle.

    Example:
        >>> import explorer as ex, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ex.save(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), f"{folder}/order.csv")
        ...     print(ex.load(f"{folder}/order.csv"))
        rank 0: 0F0 0F1 0B0 0B1
        rank 1: 1F0 1B0 1F1 1B1
    """
    file = _path(path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError(
            f"a file that can be loaded is {_KNOWN}; got {file.name!r}; try to export {file.stem}.csv", argument="path"
        )
    text = _text(file)
    try:
        return check(reader(text, file.stem, file.name))
    except ProgramError as error:
        error.args = (f"{file.name}: {error}",)  # of the orders at hand it is this file's
        raise


def save(program: Program, path: str | os.PathLike[str]) -> None:
    """Write `program` to `path`; the suffix says how, as in `load`.

    What orders do not hold (further waits, buffer capacities, the name) is not written; a warning says so.

    Args:
        program: any, complete or not.
        path: of a ``.csv`` file, which is replaced if it exists.

    Raises:
        InputError: if it is no program, the suffix is another one, or the file cannot be written.
    """
    file = _path(path)
    writer = _WRITERS.get(file.suffix.lower())
    if writer is None:
        raise InputError(f"a program is saved as {_KNOWN}; got {file.name!r}; try {file.stem}.csv", argument="path")
    if not isinstance(program, Program):
        raise InputError(
            f"what is saved is a Program; got {type(program).__name__}; make one with explorer.schedule(…)",
            argument="program",
        )
    text = writer(program)
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(
            f"a program is saved where files can be written; got {str(file)!r} ({error.strerror}); try another folder",
            argument="path",
        ) from error


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        came = "an empty one" if path == "" else type(path).__name__
        raise InputError(f"a file is named by a path; got {came}; try 'order.csv'", argument="path")
    return Path(path)


def _text(file: Path) -> str:
    try:
        size = file.stat().st_size
        if size > _LARGEST:
            raise InputError(
                f"a file has at most {_LARGEST >> 20} MiB; got {file.name!r} with {size >> 20} MiB; try fewer "
                "micro-batches",
                argument="path",
            )
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"an order is text in UTF-8; got other bytes in {file.name!r}; export it again as CSV", argument="path"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"a file must be there to be read; got {str(file)!r} ({reason}); try another path", argument="path"
        ) from error
