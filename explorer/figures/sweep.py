"""Sweeps as a table of colours and as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.figures.palette import EITHER, LEFT_OUT, MARK, RANK_COLORS, rank_color
from explorer.figures.sweep_cells import AXES, VALUES, Cells, cells_of, check_sweep, unit_of
from explorer.figures.timeline import MODEBAR
from explorer.figures.words import plain

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

_CELL, _LEAST = 30, 160  # pixels of a row, and of all at least
_MOST_WRITTEN = 400  # cells; in more there is no room for text
_SCALE = "Cividis"  # dark is little; even in lightness, and the same to colour-blind readers
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


def sweep_chart(
    frame: pd.DataFrame,
    *,
    x: str = "n_micro_batches",
    y: str | None = None,
    value: str = "bubble_ratio",
    memory_limit: float | None = None,
) -> go.Figure:
    """A sweep as a table: a colour and a number for each cell, the best marked, and why others are left out.

    Where rows of the sweep differ in more than `x` and `y`, a cell shows the best of them.

    Args:
        frame: as `explorer.sweep` gives it.
        x: column along the table: schedule, n_ranks, n_micro_batches or n_chunks.
        y: column down the table; None for the first other one that has several values.
        value: column to show: makespan, seconds_per_micro_batch, bubble_ratio, bubble_overhead, peak_bytes,
            peak_in_flight, messages or bytes_sent. Less is better.
        memory_limit: bytes of a rank; what needs more is grey. None: what the sweep itself was limited to.

    Raises:
        InputError: if `frame` is no sweep, or has no such columns.

    Example:
        >>> import explorer as ex
        >>> found = ex.sweep(["gpipe", "1f1b", "zb_h1"], n_ranks=4, n_micro_batches=[4, 8, 16])
        >>> ex.sweep_chart(found).layout.title.subtitle.text
        'best: zb_h1, 16 micro-batches: 5.9%'
    """
    import plotly.graph_objects as go

    check_sweep(frame, value, memory_limit, x=x, **({} if y is None else {"y": y}))
    cells = cells_of(frame, x=x, y=y or _other(frame, x), value=value, memory_limit=memory_limit)
    figure = go.Figure([_out(cells), _colored(cells)])
    figure.update_layout(
        _layout(VALUES[value], best_in_words(cells)),
        height=max(_CELL * len(cells.rows), _LEAST) + 156,
        margin={"l": 24, "r": 24, "t": 100, "b": 56},
        xaxis=_axis(cells.x, cells.columns),
        yaxis={**_axis(cells.y, cells.rows), "autorange": "reversed", "automargin": True},
        shapes=[] if cells.best is None else [_mark(*cells.best)],
    )
    return figure


def sweep_lines(
    frame: pd.DataFrame,
    *,
    x: str = "n_micro_batches",
    value: str = "bubble_ratio",
    memory_limit: float | None = None,
) -> go.Figure:
    """A sweep as lines, one for each schedule and whatever else differs besides `x`.

    Points that need more than the limit are hollow; where a schedule does not exist, its line has a gap.

    Args:
        frame: as `explorer.sweep` gives it.
        x: column along the chart: n_ranks, n_micro_batches or n_chunks.
        value: column to show, as for `sweep_chart`.
        memory_limit: bytes of a rank; None: what the sweep itself was limited to.

    Raises:
        InputError: if `frame` is no sweep, or has no such columns.
    """
    import plotly.graph_objects as go

    check_sweep(frame, value, memory_limit, x=x)
    others = [name for name in AXES if name != x and (name == "schedule" or _varies(frame, name))]
    groups = list(frame.groupby(others, sort=False))
    unit = unit_of(frame, value)
    figure = go.Figure()
    for number, (key, rows) in enumerate(groups):
        cells = cells_of(rows.sort_values(x), x=x, y="schedule", value=value, memory_limit=memory_limit)
        figure.add_trace(_line(cells, _called(others, key), number, len(groups)))
    told = f"by {AXES[x]}; less is better; hollow: not legal, or more than the memory limit"
    figure.update_layout(
        _layout(VALUES[value], told),
        height=420,
        margin={"l": 72, "r": 24, "t": 88, "b": 56},
        legend={"x": 1.01, "y": 1},
        xaxis={
            **_frame(),
            "title": {"text": AXES[x]},
            "type": "log" if _spread(frame, x) else "-",
            "tickvals": sorted(frame[x].unique()),
        },
        yaxis={
            **_frame(),
            "title": {"text": f"{VALUES[value]}{f' ({unit.name})' if unit.name else ''}"},
            "rangemode": "tozero",
        },
    )
    return figure


def best_in_words(cells: Cells) -> str:
    """Where the best cell is and what it has."""
    if cells.best is None:
        return "nothing here exists within the limit; the reasons are under each cell"
    row, column = cells.best
    places = [(cells.y, cells.rows[row]), (cells.x, cells.columns[column])]
    words = [plain(str(at)) if name == "schedule" else f"{at} {AXES[name]}" for name, at in places]
    return f"best: {', '.join(words)}: {cells.text[row][column]}"


def _other(frame: pd.DataFrame, x: str) -> str:
    """The first column besides `x` in which a sweep's rows differ."""
    names = [name for name in AXES if name != x]
    return next((name for name in names if _varies(frame, name)), names[0])


def _varies(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column tells rows apart; stages a rank do not where each schedule has but one number of them."""
    groups = [rows for _, rows in frame.groupby("schedule")] if name == "n_chunks" else [frame]
    return any(len(set(rows[name].tolist())) > 1 for rows in groups)


def _colored(cells: Cells) -> go.Heatmap:
    """The cells that count."""
    return _heat(cells, cells.counts, np.where(cells.counts, cells.number, np.nan) * cells.unit.factor).update(
        colorscale=_SCALE,
        colorbar={"title": {"text": cells.unit.name or None}, "outlinewidth": 0, "thickness": 12},
    )


def _out(cells: Cells) -> go.Heatmap:
    """The cells that do not: grey, with their reason."""
    there = ~cells.counts & (cells.row >= 0)
    drawn = _heat(cells, there, np.where(there, 0.0, np.nan))
    return drawn.update(colorscale=[[0, LEFT_OUT], [1, LEFT_OUT]], showscale=False, textfont={"color": EITHER.text})


def _heat(cells: Cells, there: Any, z: Any) -> go.Heatmap:
    import plotly.graph_objects as go

    written = there.size <= _MOST_WRITTEN
    text = [
        [word if fine else "" for word, fine in zip(*line, strict=True)] for line in zip(cells.text, there, strict=True)
    ]
    return go.Heatmap(
        z=z,
        text=text if written else None,
        texttemplate="%{text}" if written else None,
        customdata=np.stack([cells.row.astype(object), np.array(cells.hover, object)], axis=-1),
        hovertemplate="%{customdata[1]}<extra></extra>",
        xgap=2,
        ygap=2,
    )


def _axis(name: str, values: list[Any]) -> dict[str, Any]:
    places = list(range(len(values)))
    texts = [plain(str(value)) for value in values]
    return {
        "title": {"text": "" if name == "schedule" else AXES[name]},
        **{"tickvals": places, "ticktext": texts, "showgrid": False, "zeroline": False, "fixedrange": True},
    }


def _mark(row: int, column: int) -> dict[str, Any]:
    """A frame around the best cell."""
    box = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", "line": {"color": MARK, "width": 3}, **box}


def _line(cells: Cells, name: str, number: int, n_lines: int) -> go.Scatter:
    import plotly.graph_objects as go

    color = rank_color(number, n_lines) if n_lines > len(RANK_COLORS) else RANK_COLORS[number]
    symbols = [_SYMBOLS[number % len(_SYMBOLS)] + ("" if fine else "-open") for fine in cells.counts[0]]
    return go.Scatter(
        x=cells.columns,
        y=cells.number[0] * cells.unit.factor,
        mode="lines+markers",
        line={"color": color, "width": 2},
        marker={"size": 8, "symbol": symbols},
        name=name,
        text=cells.hover[0],
        hovertemplate="%{text}<extra></extra>",
    )


def _called(names: list[str], key: Any) -> str:
    """What a line is called: its schedule, and whatever else it stands for."""
    words = [str(at) if name == "schedule" else f"{at} {AXES[name]}" for name, at in zip(names, key, strict=True)]
    return plain(", ".join(words))


def _spread(frame: pd.DataFrame, x: str) -> bool:
    """Whether an axis spans so much that steps of equal factor read better."""
    return bool(frame[x].min() > 0 and frame[x].max() >= 8 * frame[x].min())


def _frame() -> dict[str, Any]:
    return {"gridcolor": EITHER.grid, "zerolinecolor": EITHER.grid, "fixedrange": True}


def _layout(title: str, told: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "subtitle": {"text": told}, "x": 0.01, "font": {"size": 16}},
        "template": "none",
        "font": {"color": EITHER.text, "size": 12},
        **{"paper_bgcolor": EITHER.paper, "plot_bgcolor": EITHER.paper, "modebar": MODEBAR},
    }
