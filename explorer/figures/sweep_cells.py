"""A sweep's rows arranged in the cells of a table, each with its best row, its words and whether it counts."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.errors import InputError
from explorer.figures.units import Unit, bytes_unit
from explorer.figures.words import plain

if TYPE_CHECKING:
    import pandas as pd

AXES = {
    "schedule": "schedule",
    "n_ranks": "ranks",
    "n_micro_batches": "micro-batches",
    "n_chunks": "stages a rank",
}
VALUES = {
    "makespan": "makespan",
    "seconds_per_micro_batch": "time per micro-batch",
    "bubble_ratio": "idle time, of ranks × makespan",
    "bubble_overhead": "idle time, of busy time",
    "peak_bytes": "peak memory of a rank",
    "peak_in_flight": "peak in flight, micro-batches × stages",
    "messages": "messages",
    "bytes_sent": "bytes sent",
}
_SHARES, _BYTES = ("bubble_ratio", "bubble_overhead"), ("peak_bytes", "bytes_sent")
_LINE = 64  # characters of a line of hover text


class Cells(NamedTuple):
    """A table of a sweep.

    Attributes:
        x, y: names of the columns that span it.
        columns, rows: their values, in order.
        value: name of the column it shows.
        unit: of what it shows.
        number: (n_rows, n_columns) float64, the value; NaN where there is none.
        counts: (n_rows, n_columns) bool, whether the cell is legal and within the limit.
        row: (n_rows, n_columns) int64, the sweep's row behind each cell; −1 = none.
        text: what is written in each cell.
        hover: what is said of it, escaped.
        best: row and column of the least value that counts; None if none does.
    """

    x: str
    y: str
    columns: list[Any]
    rows: list[Any]
    value: str
    unit: Unit
    number: npt.NDArray[np.float64]
    counts: npt.NDArray[np.bool_]
    row: npt.NDArray[np.int64]
    text: list[list[str]]
    hover: list[list[str]]
    best: tuple[int, int] | None


def cells_of(frame: pd.DataFrame, *, x: str, y: str, value: str, memory_limit: float | None) -> Cells:
    """The table of `value` over `x` and `y`; where rows differ in more than these, the best of them that counts.

    Args:
        frame: as `explorer.sweep` gives it.
        x: column to span the table with.
        y: the other one, from top to bottom.
        value: column to show; less is better.
        memory_limit: bytes; what needs more does not count. None: what the sweep says.
    """
    frame = frame.reset_index(drop=True)
    unit = unit_of(frame, value)
    counts = frame["legal"].to_numpy(bool)
    if memory_limit is not None:
        counts = counts & (frame["peak_bytes"].to_numpy(float) <= memory_limit)
    number = np.where(np.isfinite(frame["makespan"].to_numpy(float)), frame[value].to_numpy(float), np.nan)
    columns, rows = (list(dict.fromkeys(frame[name].tolist())) for name in (x, y))
    columns, rows = (sorted(values) if name != "schedule" else values for name, values in ((x, columns), (y, rows)))
    row = _best_rows(frame, counts, number, (y, rows), (x, columns))
    there, picked = row >= 0, np.maximum(row, 0)
    shown = np.where(there, number[picked], np.nan)
    fine = there & counts[picked]
    text = [[_number(amount, value, unit) for amount in line] for line in shown.tolist()]
    hover = [
        [_words(frame, k, fit, memory_limit) if k >= 0 else "" for k, fit in zip(line, fits, strict=True)]
        for line, fits in zip(row.tolist(), fine.tolist(), strict=True)
    ]
    among = np.where(fine, shown, np.inf)
    place = np.unravel_index(int(np.argmin(among)), among.shape)
    best = (int(place[0]), int(place[1])) if np.isfinite(among[place]) else None
    return Cells(x, y, columns, rows, value, unit, shown, fine, row, text, hover, best)


def check_sweep(frame: Any, value: object, memory_limit: object, **axes: object) -> None:
    """Refuse what is no sweep, or asks for what it has not.

    Raises:
        InputError: saying what there is.
    """
    wanted = {"legal", "reason", *AXES, *VALUES}
    if not wanted <= set(getattr(frame, "columns", ())) or not len(frame):
        raise InputError(
            f"a sweep chart draws what explorer.sweep gives, with a row at least; got {type(frame).__name__}; "
            "try explorer.sweep(['gpipe', '1f1b'], n_ranks=[2, 4], n_micro_batches=[4, 8])",
            argument="frame",
        )
    for argument, name, names in (("value", value, VALUES), *((axis, name, AXES) for axis, name in axes.items())):
        if name not in names:
            raise InputError(
                f"{argument} is one of {', '.join(names)}; got {str(name)[:40]!r}; try {next(iter(names))!r}",
                argument=argument,
            )
    number = isinstance(memory_limit, (int, float, np.integer, np.floating)) and not isinstance(memory_limit, bool)
    if memory_limit is not None and not (number and memory_limit > 0):  # type: ignore[operator]
        raise InputError(
            f"memory_limit is bytes, above 0; got {str(memory_limit)[:40]}; try 80e9", argument="memory_limit"
        )


def unit_of(frame: pd.DataFrame, value: str) -> Unit:
    """The unit of a column; simulated times have none."""
    if value in _SHARES:
        return Unit("%", 100.0)
    return bytes_unit(float(frame[value].max())) if value in _BYTES else Unit("", 1.0)


def _number(amount: float, value: str, unit: Unit) -> str:
    """What is written in a cell."""
    if not np.isfinite(amount):
        return "–"
    return f"{amount:.1%}" if value in _SHARES else unit.show(amount)


def _best_rows(
    frame: pd.DataFrame,
    counts: npt.NDArray[np.bool_],
    number: npt.NDArray[np.float64],
    y: tuple[str, list[Any]],
    x: tuple[str, list[Any]],
) -> npt.NDArray[np.int64]:
    """(n_rows, n_columns) the row of the least value that counts, else of the least there is, else any; −1 = none."""
    down, across = ({value: place for place, value in enumerate(values)} for _, values in (y, x))
    order = np.lexsort((np.nan_to_num(number, nan=np.inf), ~counts))
    row = np.full((len(down), len(across)), -1, np.int64)
    places = frame[y[0]].map(down).to_numpy(), frame[x[0]].map(across).to_numpy()
    for k in order[::-1].tolist():  # the best comes last and stays
        row[places[0][k], places[1][k]] = k
    return row


def _words(frame: pd.DataFrame, k: int, fine: bool, memory_limit: float | None) -> str:
    """All about one row, in lines."""
    one = frame.iloc[k]
    chunks = f" × {one['n_chunks']} stages" if one["n_chunks"] > 1 else ""
    lines = [
        f"<b>{plain(str(one['schedule']))}</b>",
        f"{one['n_ranks']} ranks{chunks}, {one['n_micro_batches']} micro-batches",
    ]
    if np.isfinite(one["makespan"]):
        lines.append(f"makespan {one['makespan']:.4g}, {one['seconds_per_micro_batch']:.4g} per micro-batch")
        lines.append(f"idle {one['bubble_ratio']:.1%} of ranks × makespan, {one['bubble_overhead']:.1%} of busy time")
        held = bytes_unit(float(one["peak_bytes"])).show(float(one["peak_bytes"])) if one["peak_bytes"] else ""
        lines.append(f"peak {held}{', ' if held else ''}{one['peak_in_flight']} micro-batches × stages")
    if fine:
        return "<br>".join(lines)
    over = one["legal"] and memory_limit is not None
    reason = (
        f"more than the limit of {bytes_unit(memory_limit or 0).show(memory_limit or 0)}"
        if over
        else str(one["reason"])
    )
    return "<br>".join([*lines, "", *(plain(line) for line in textwrap.wrap(reason, _LINE))])
