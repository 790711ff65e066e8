"""What lies below the picture: why ranks wait, memory, all schedules side by side, the code; worked out when opened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from explorer.core import Trace
from explorer.errors import ExplorerError
from explorer.widgets.basis import measured_share
from explorer.widgets.code import Code, code_of
from explorer.widgets.compared import compared, title_of
from explorer.widgets.look import Look, show
from explorer.widgets.markup import Markup, element
from explorer.widgets.memory_page import MemoryPanel
from explorer.widgets.pace import Pace
from explorer.widgets.settings import Settings
from explorer.widgets.sweeps import SweepPanel
from explorer.widgets.why import why_page
from explorer.widgets.why_live import MOST_LIVE, LiveWhy

NONE, WHY, MEMORY, COMPARE, SWEEP, CODE = "none", "why", "memory", "compare", "sweep", "code"
_TITLES = (
    ("Picture alone", NONE, "nothing below the picture"),
    ("Why", WHY, "why ranks wait, and what would help"),
    ("Memory", MEMORY, "what a rank holds memory for, and who holds it at the peak"),
    ("Compare", COMPARE, "every schedule at these numbers and equal work"),
    ("Sweep", SWEEP, "schedules over micro-batches, ranks or chunks"),
    ("Code", CODE, "the cell that reproduces what is shown"),
)
_SWEPT = ("n_ranks", "n_micro_batches", "schedule", "n_chunks", "options")
_QUIET = 0.25  # seconds without a change after which a place follows: the picture comes first
_WAIT = element("p", "Working it out …", kind="note")
_NOTHING = element("p", "There is no picture yet", kind="note")
_BASES = (("measured by the run", True), ("set here", False))
_Shown = tuple[Trace, Settings, Trace | None]  # what the picture shows, and of a run what was predicted


class Places(ipywidgets.VBox):  # type: ignore[misc]
    """A row of names, and below it what is behind the one that is chosen.

    Attributes:
        choice: the row.
        basis: whether Compare is of the costs that the run measured, while one is shown; else of those set here.
        sweeps: what is behind "sweep", once it has been opened.
        memory: what is behind "memory", once it has been opened.
    """

    def __init__(
        self, look: Look, settings: Callable[[], Settings], on_open: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self.choice = ipywidgets.ToggleButtons(
            options=[(title, name) for title, name, _ in _TITLES],
            tooltips=[tip for _, _, tip in _TITLES],
            style={"button_width": "auto"},
            layout=look.plain,
        )
        self._page = look.text("pipeline-page")
        self._opens = ipywidgets.Dropdown(options=[], description="Open", style=look.lists, layout=look.plain)
        self._open = ipywidgets.Button(description="Show it above", layout=look.plain)
        self.basis = ipywidgets.Dropdown(options=_BASES, description="Costs", style=look.lists, layout=look.plain)
        show(self.basis, False)
        self._opening = ipywidgets.HBox([self._opens, self._open, self.basis], layout=look.plain)
        self._opening.add_class("pipeline-row")
        self._code = Code()
        self._coded = ipywidgets.VBox([self._code], layout=look.plain)  # once drawn, an anywidget follows no class
        self._found: dict[str, int] = {}  # schedules that were compared, with their chunks
        self._look, self._settings, self._on_open = look, settings, on_open
        self.sweeps: SweepPanel | None = None
        self.memory: MemoryPanel | None = None
        self._live: LiveWhy | None = None  # while a run goes on
        self._memory_pace = Pace()
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._timer: threading.Timer | None = None
        self._of: _Shown | None = None
        self._done: tuple[str, _Shown | None, bool] = (NONE, None, True)
        self._always = (self.choice, self._opening, self._page, self._coded)
        super().__init__(self._always, layout=look.plain)
        self.add_class("pipeline-places")
        self.choice.observe(self._chosen, "value")
        self.basis.observe(self._chosen, "value")
        self._open.on_click(lambda _button: self._open_compared())
        self._chosen()

    @property
    def page(self) -> str:
        """What is shown, as HTML."""
        return str(self._page.value)

    @property
    def code(self) -> str:
        """The cell that reproduces what is shown."""
        return str(self._code.text)

    @property
    def schedules(self) -> tuple[str, ...]:
        """Those that were compared and exist, the fastest first."""
        return tuple(self._found)

    def show(self, name: str) -> None:
        """Show one of them in the picture."""
        self._opens.value = name
        self._open.click()

    def follow(self, trace: Trace, settings: Settings, predicted: Trace | None = None) -> None:
        """What the picture shows now, and behind what was measured the prediction."""
        self._of = trace, settings, predicted
        self.release()

    def settle(self) -> None:
        """A run is about to begin: what waits for quiet is done now, or after it, and nothing beside it."""
        with self._lock:
            waits = self._timer is not None and self._timer.is_alive()
            if self._timer is not None:
                self._timer.cancel()
            self._live = LiveWhy()
        if waits and self.choice.value != COMPARE and self._is_small():
            self._work()

    def follow_run(self, trace: Trace, settings: Settings, predicted: Trace | None) -> None:
        """The picture shows what of a run is measured until now; called between two of its operations."""
        self._of = trace, settings, predicted
        live = self._live
        if live is None:
            return
        if self.choice.value == MEMORY and self.memory is not None and self._memory_pace.is_due:
            self._memory_pace.work(self._grow_memory)
        elif self.choice.value == WHY:
            self._explain(live, trace)

    def _grow_memory(self) -> bool:
        if self.memory is not None and self._of is not None:
            trace, settings, predicted = self._of
            self.memory.follow(trace, predicted=predicted, memory_limit=settings.limit)
        return True

    def _explain(self, live: LiveWhy, trace: Trace) -> None:
        page = live.work(trace)
        with self._lock:
            if page and live is self._live and self.choice.value == WHY:
                self._done = NONE, None, True
                self._page.value = page

    def release(self) -> None:
        """No run goes on any more: what is shown stays."""
        self._live = None
        self._later(_QUIET)

    def end(self) -> None:
        """Work nothing out any more."""
        if self.sweeps is not None:
            self.sweeps.wait()
        with self._lock:
            self._of = None
            if self._timer is not None:
                self._timer.cancel()

    def _chosen(self, _change: Any = None) -> None:
        place = self.choice.value
        show(self._page, place in (WHY, COMPARE))
        show(self._opening, place == COMPARE)
        show(self._coded, place == CODE)
        self._make(place)
        for name, panel in ((SWEEP, self.sweeps), (MEMORY, self.memory)):
            if panel is not None:
                show(panel, place == name)
        if place in (WHY, COMPARE) and self._done != self._wanted():
            self._page.value = _NOTHING if self._of is None else _WAIT
        if place == WHY and self._live is not None:
            self._live = LiveWhy()  # with the next frame
        else:
            self._later(0.0)

    def _wanted(self) -> tuple[str, _Shown | None, bool]:
        """What is to be worked out: where, of what, and at whose costs."""
        return str(self.choice.value), self._of, bool(self.basis.value)

    def _make(self, place: str) -> None:
        """Make what is opened for the first time: most never open it."""
        if place == SWEEP and self.sweeps is None:
            self.sweeps = SweepPanel(self._settings, self._go_to, self._look)
        if place == MEMORY and self.memory is None:
            self.memory = MemoryPanel(self._look)
        self.children = (*self._always, *(panel for panel in (self.sweeps, self.memory) if panel is not None))

    def _open_compared(self) -> None:
        name = self._opens.value
        self._on_open({"schedule": name, "n_chunks": self._found[name], "options": ""})

    def _go_to(self, settings: Settings) -> None:
        self._on_open({name: getattr(settings, name) for name in _SWEPT})

    def _is_small(self) -> bool:
        return self._of is not None and self._of[0].program.n_actions <= MOST_LIVE

    def _later(self, seconds: float) -> None:
        """Work it out in a thread of its own, once nothing has changed for so long."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self.choice.value in (NONE, SWEEP) or self._of is None:
                return
            self._timer = threading.Timer(seconds, self._work)
            self._timer.daemon = True
            self._timer.start()

    def _work(self) -> None:
        """Work out what is shown now; one at a time, so that changes faster than the work do not pile it up."""
        with self._turn:
            self._work_out()

    def _work_out(self) -> None:
        place, of, by_run = wanted = self._wanted()
        if of is None or self._done == wanted:
            return
        trace, settings, _ = of
        found: dict[str, int] = {}
        page = Markup()
        try:
            if place == CODE:
                self._code.text = code_of(settings, None if trace.clock == "simulated" else trace)
            elif place == COMPARE:
                measured = measured_share(*of)
                show(self.basis, measured is not None)
                page, found = compared(settings, measured if by_run else None, with_faults=bool(trace.marks))
            elif place == MEMORY:
                self._grow_memory()
            elif place == WHY:
                share = measured_share(*of) or settings.share()
                page = why_page(trace, share, memory_limit=settings.limit)
        except ExplorerError as error:
            page = element("p", str(error), kind="explanation")
        with self._lock:
            if wanted != self._wanted():
                return  # another one is under way
            self._done = wanted
            self._page.value = page
            if found:
                self._opens.options = [(title_of(name), name) for name in found]
                self._opens.value = next(iter(found))
                self._found = found  # last: who sees it may choose
