"""Programs and traces in files; the suffix says how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from explorer.core import Program, Trace, check
from explorer.errors import InputError, ProgramError
from explorer.io.contents import as_path, read_text, suffix_of, write_text
from explorer.io.order_csv import read_order, write_order
from explorer.io.recorded import load_recording
from explorer.io.trace_csv import MARK, read_trace_csv, write_trace_csv
from explorer.io.trace_json import read_trace_json, write_trace_json

_LARGEST = 1024 * 2**20  # bytes: a trace of about three million events
_TRACE_WRITERS: dict[str, Callable[[Trace], Iterator[str]]] = {".json": write_trace_json, ".csv": write_trace_csv}
_ORDERS = "an order as .csv, a row a rank, such as torch writes it"
_TRACES = ".json, which Perfetto opens, or .csv, or either with .gz behind it"


def load(path: str | os.PathLike[str]) -> Program | Trace:
    """The program or the trace in the file or folder at `path`, checked; the suffix says how it is written.

    A program is a ``.csv`` that pipeline schedules of torch export: a row a rank, a slot a cell, with or without
    communication. Numbers of stages and micro-batches and the placement are what the order shows.

    A trace is a ``.json``, ``.json.gz``, ``.csv`` or ``.csv.gz`` of `save`, or a folder of `record`, whose ranks are
    joined; of several pipelines there, a rank's own file names one.

    Args:
        path: of the file or the folder.

    Raises:
        InputError: if there is no such file, it is too large, not text, broken, or something in it cannot be; of an
            order it names line and column.
        ProgramError: if an action is missing, doubled, misplaced or out of range.
        CircularWaitError: if actions wait for each other in a circle.

    Example:
        >>> import explorer as ex, tempfile
        >>> program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ex.save(program, f"{folder}/order.csv")
        ...     print(ex.load(f"{folder}/order.csv"))
        ...     ex.save(ex.simulate(program), f"{folder}/run.json.gz")
        ...     print(ex.load(f"{folder}/run.json.gz").makespan)
        rank 0: 0F0 0F1 0B0 0B1
        rank 1: 1F0 1B0 1F1 1B1
        9.0
    """
    file = as_path(path)
    suffix = suffix_of(file)
    if file.is_dir() or suffix == ".jsonl":
        return load_recording(file)
    if suffix == ".csv":
        text = read_text(file, largest=_LARGEST, advice="fewer micro-batches")
        return read_trace_csv(text, file.name) if text.startswith(MARK) else _order(text, file)
    if suffix == ".json":
        text = read_text(file, largest=_LARGEST, advice="fewer steps: trace.step(…)")
        return read_trace_json(text, file.name)
    raise InputError(
        f"a file that can be loaded is {_ORDERS}, or a trace as {_TRACES}; got {file.name!r}; try to export "
        f"{file.stem}.csv",
        argument="path",
    )


def _order(text: str, file: Path) -> Program:
    try:
        return check(read_order(text, file.name.partition(".")[0], file.name))
    except ProgramError as error:
        error.args = (f"{file.name}: {error}",)  # of the orders at hand it is this file's
        raise


def save(value: Program | Trace, path: str | os.PathLike[str]) -> None:
    """Write a program or a trace to `path`; the suffix says how, as in `load`.

    A trace as ``.json`` or ``.json.gz`` opens in ui.perfetto.dev and chrome://tracing and holds every column exactly;
    as ``.csv`` it is a table with a row an event. Loaded again it is equal: program, costs, clock and memory come back.

    Of a program, what orders do not hold (further waits, buffer capacities, the name) is not written; a warning says
    so.

    Args:
        value: any program, complete or not, or a trace.
        path: of a file, which is replaced if it exists.

    Raises:
        InputError: if it is neither, the suffix is another one, or the file cannot be written.
    """
    file = as_path(path)
    writer = _writer(value, file)
    write_text(file, writer(value))


def _writer(value: object, file: Path) -> Callable[[Any], Iterable[str]]:
    suffix = suffix_of(file)
    if isinstance(value, Trace):
        if suffix not in _TRACE_WRITERS:
            raise InputError(
                f"a trace is saved as {_TRACES}; got {file.name!r}; try {file.stem}.json.gz", argument="path"
            )
        return _TRACE_WRITERS[suffix]
    if not isinstance(value, Program):
        held = isinstance(getattr(value, "trace", None), Trace)
        advice = "give its .trace" if held else "make one with explorer.schedule(…) or explorer.simulate(…)"
        raise InputError(
            f"what is saved is a Program or a Trace; got {type(value).__name__}; {advice}", argument="value"
        )
    if suffix != ".csv":
        raise InputError(f"a program is saved as {_ORDERS}; got {file.name!r}; try {file.stem}.csv", argument="path")
    return write_order
