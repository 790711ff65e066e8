"""Sweeps in the app: schedules by micro-batches or ranks, as a table whose cells open in the controls."""

from __future__ import annotations

import html
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import numpy.typing as npt
import traitlets

from explorer.errors import ExplorerError, InputError
from explorer.figures.sweep import best_in_words
from explorer.figures.sweep_cells import AXES, VALUES, Cells, cells_of
from explorer.figures.units import bytes_unit
from explorer.planner import Outcome, sweep_outcomes
from explorer.planner.sweep import to_frame
from explorer.schedules import REGISTRY
from explorer.widgets.closing import close_tree
from explorer.widgets.look import Look
from explorer.widgets.settings import Settings

_BROWSER = pathlib.Path(__file__).parent / "browser"
_PAUSE = 0.15  # seconds between two pictures of an unfinished sweep
_BEGIN = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v")
_SHOWN = ("bubble_ratio", "makespan", "seconds_per_micro_batch", "peak_bytes", "peak_in_flight", "messages")
_MOST_POINTS = 2000


class SweepTable(anywidget.AnyWidget):
    """The table; it knows cells, not schedules.

    Attributes:
        cells: `rows`, `columns` and `across`, their names; `title`; `text`, `told`, `over` and `shade`, by row and
            column: `over`, whether a rank's device has too little memory; `shade` from 0 (the least) to 1, or None for
            what does not count; `best`, row and column, or None; `key`, what the signs mean.
        chosen: row and column of the cell last clicked, and how many clicks there have been.
    """

    _esm = (_BROWSER / "sweep.js").read_text("utf-8")
    _css = (_BROWSER / "sweep.css").read_text("utf-8")

    cells = traitlets.Dict().tag(sync=True)
    chosen: Any = traitlets.List([-1, -1, 0]).tag(sync=True)


class SweepPanel(ipywidgets.VBox):  # type: ignore[misc]
    """Controls of a sweep, its table, and what it says.

    Args:
        settings: gives what the app's controls say now: costs, and what is not swept.
        on_open: is given the settings of a cell that was clicked.
        look: shared layouts and styles.
    """

    def __init__(self, settings: Callable[[], Settings], on_open: Callable[[Settings], None], look: Look) -> None:
        self._settings, self._on_open = settings, on_open
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._frame: Any = None
        self._cells: Cells | None = None
        self._asked: Settings | None = None
        trains = [(recipe.title, name) for name, recipe in REGISTRY.items() if recipe.trains]
        names = {"style": look.lists, "layout": look.wide}
        self.schedules = ipywidgets.SelectMultiple(
            options=trains, value=_BEGIN, rows=6, description="Schedules", **names
        )
        over = [(AXES[name], name) for name in ("n_micro_batches", "n_ranks", "n_chunks")]
        self.over = ipywidgets.Dropdown(options=over, description="Over", **names)
        self.counts = ipywidgets.Text("4, 8, 16, 32", description="Values", style=look.texts, layout=look.wide)
        shown = [(VALUES[name], name) for name in _SHOWN]
        self.value = ipywidgets.Dropdown(options=shown, description="Show", **names)
        self.start = ipywidgets.Button(description="Sweep", icon="table", button_style="primary")
        self.stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.status, self.error = look.text("pipeline-status"), look.text("pipeline-explanation")
        self.table = SweepTable()
        row = ipywidgets.HBox([self.start, self.stop], layout=look.plain)
        super().__init__(
            [self.schedules, self.over, self.counts, self.value, row, self.error, self.status, self.table],
            layout=look.plain,
        )
        self.add_class("pipeline-sweeps")
        self.start.on_click(lambda _: self.begin())
        self.stop.on_click(lambda _: self._stop.set())
        self.value.observe(lambda _: self._show(), "value")
        self.table.observe(lambda change: self._open(*change["new"][:2]), "chosen")

    def begin(self) -> None:
        """Sweep what the controls say, in a thread of its own; the one before stops."""
        self.wait()
        self.error.value = ""
        try:
            outcomes, total = self._outcomes()
        except ExplorerError as error:
            self.error.value = _escaped(str(error))
            return
        self._stop.clear()
        self.start.disabled, self.stop.disabled = True, False
        self._thread = threading.Thread(target=self._follow, args=(outcomes, total), name="sweep", daemon=True)
        self._thread.start()

    def wait(self, *, finish: bool = False) -> None:
        """Until no sweep goes on: stop it, or let it finish."""
        if not finish:
            self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop what goes on, and free the widgets."""
        self.wait()
        close_tree(self)

    def _outcomes(self) -> tuple[Iterator[Outcome], int]:
        asked = self._asked = self._settings()
        counts = read_counts(self.counts.value)
        chosen = list(self.schedules.value)
        if not chosen:
            raise InputError("a sweep needs a schedule at least; none is chosen; choose 1F1B", argument="schedules")
        if len(chosen) * len(counts) > _MOST_POINTS:
            raise InputError(f"a sweep has at most {_MOST_POINTS} cells; got {len(chosen) * len(counts)}; try fewer")
        sizes = {"n_ranks": asked.n_ranks, "n_micro_batches": asked.n_micro_batches, "n_chunks": None}
        sizes[self.over.value] = counts  # type: ignore[assignment]
        share: Any = replace(asked, late_action="").share()
        found = sweep_outcomes(chosen, **sizes, costs=share, memory_limit=asked.limit)  # type: ignore[arg-type]
        return found, len(chosen) * len(counts)

    def _follow(self, outcomes: Iterator[Outcome], total: int) -> None:
        found: list[Outcome] = []
        drawn = time.monotonic()
        try:
            for one in outcomes:
                found.append(one)
                if self._stop.is_set():
                    break
                if time.monotonic() - drawn > _PAUSE:
                    self._tell(found, total)
                    drawn = time.monotonic()
        except Exception as error:  # noqa: BLE001  a thread has nobody else to tell
            self.error.value = _escaped(f"{type(error).__name__}: {error}")
        finally:
            self._tell(found, total)
            self.start.disabled, self.stop.disabled = False, True

    def _tell(self, found: list[Outcome], total: int) -> None:
        if found:
            self._frame = to_frame(found)
            self._show()
        stopped = " · stopped" if self._stop.is_set() and len(found) < total else ""
        self.status.value = f"{len(found)} of {total}{stopped} · click a cell to open it"

    def _show(self) -> None:
        """Draw what has been found in the column that is chosen."""
        frame, over = self._frame, self.over.value
        if frame is None:
            return
        over = next((name for name in (over, *AXES) if name != "schedule" and frame[name].nunique() > 1), over)
        self._cells = cells_of(frame, x=over, y="schedule", value=self.value.value, memory_limit=None)
        drawn = _as_dict(self._cells, self._asked.limit if self._asked else None)
        unknown = self.value.value == "peak_bytes" and not frame["peak_bytes"].any()
        self.table.cells = _without_bytes(drawn) if unknown else drawn

    def _open(self, row: int, column: int) -> None:
        """Hand over the settings behind a cell."""
        cells = self._cells
        if (
            cells is None
            or self._asked is None
            or not (0 <= row < len(cells.rows) and 0 <= column < len(cells.columns))
        ):
            return
        if cells.row[row, column] < 0:
            return
        one = self._frame.iloc[int(cells.row[row, column])]
        ranks, micro_batches, chunks = (int(one[name]) for name in ("n_ranks", "n_micro_batches", "n_chunks"))
        opened = replace(self._asked, schedule=str(one["schedule"]), options="")
        self._on_open(replace(opened, n_ranks=ranks, n_micro_batches=micro_batches, n_chunks=chunks))


def read_counts(text: str) -> list[int]:
    """The whole numbers in ``"4, 8, 16"``, or from 4 to 12 in ``"4-12"``.

    Raises:
        InputError: if a part is neither, or there are none.
    """
    found: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if not (first.isdecimal() and len(first) < 7 and (last.isdecimal() and len(last) < 7 if dash else not last)):
            raise InputError(
                f"values are whole numbers with commas between; got {part[:40]!r}; try 4, 8, 16", argument="counts"
            )
        found.extend(range(int(first), min(int(last), int(first) + _MOST_POINTS) + 1) if dash else [int(first)])
    if not found:
        raise InputError("a sweep needs a value at least; got none; try 4, 8, 16", argument="counts")
    return sorted(set(found))


def _as_dict(cells: Cells, memory_limit: float | None) -> dict[str, Any]:
    """The cells as the browser reads them."""
    titles = [REGISTRY[name].title for name in cells.rows]
    over = ~cells.counts & np.isfinite(cells.number)  # it exists, and yet does not count
    counted = np.where(cells.counts, cells.number, np.nan)
    low, high = (
        float(end(counted, initial=start, where=cells.counts)) for end, start in ((np.min, np.inf), (np.max, -np.inf))
    )
    shade = (counted - low) / (high - low) if high > low else np.where(cells.counts, 0.5, np.nan)
    return {
        "rows": titles,
        "columns": [str(value) for value in cells.columns],
        "across": AXES[cells.x],
        "title": f"{VALUES[cells.value]} · {best_in_words(cells._replace(rows=titles))}",
        "text": cells.text,
        "told": [
            [told.replace("<br>", "\n").replace("<b>", "").replace("</b>", "") for told in line] for line in cells.hover
        ],
        "shade": [[None if np.isnan(one) else one for one in line] for line in shade.tolist()],
        "over": over.tolist(),
        "key": _key(over, memory_limit),
        "best": None if cells.best is None else list(cells.best),
    }


def _without_bytes(drawn: dict[str, Any]) -> dict[str, Any]:
    """The cells where no bytes are known, which are not 0."""
    rows = drawn["text"]
    told = "peak memory of a rank · no bytes are known: type Activations or Parameters under Memory, and sweep again"
    return {
        **drawn,
        "text": [["–"] * len(row) for row in rows],
        "shade": [[None] * len(row) for row in rows],
        "best": None,
        "title": told,
    }


def _key(over: npt.NDArray[np.bool_], memory_limit: float | None) -> str:
    """What struck cells mean, where there are any."""
    if memory_limit is None or not over.any():
        return ""
    many = "1 cell needs" if over.sum() == 1 else f"{over.sum()} cells need"
    return f"Struck out: {many} more than the {bytes_unit(memory_limit).show(memory_limit)} of a rank's device"


def _escaped(text: str) -> str:
    return html.escape(text)
