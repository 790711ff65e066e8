"""Below the picture: what a rank holds memory for over time, and who holds it at its peak."""

from __future__ import annotations

import threading

import ipywidgets

from explorer.analysis import peak_holders
from explorer.core import Trace
from explorer.figures.memory_stack import StackInfo, memory_stack_info
from explorer.figures.units import time_unit
from explorer.widgets.look import Look, show
from explorer.widgets.markup import element
from explorer.widgets.memory_chart import MemoryChart, chart_of
from explorer.widgets.memory_words import holders_page, memory_summary

_FULLEST = -1
_UNKNOWN = "No bytes are known here: type Activations and Parameters under Memory, above the picture, or press Run"


class MemoryPanel(ipywidgets.VBox):  # type: ignore[misc]
    """A rank to choose, its memory over time, and who holds it at the moment that is chosen.

    Attributes:
        rank: the choice; the fullest to begin with.
        chart: the layers.
        at_peak: goes back to the peak.
    """

    def __init__(self, look: Look) -> None:
        self._of: tuple[Trace, Trace | None, float | None] | None = None
        self._info: StackInfo | None = None
        self._lock = threading.RLock()
        self.rank = ipywidgets.Dropdown(
            options=[("the fullest", _FULLEST)], description="Rank", style=look.lists, layout=look.plain
        )
        self.at_peak = ipywidgets.Button(description="At the peak", icon="caret-up", layout=look.plain)
        self.chart = MemoryChart()
        self._row = ipywidgets.HBox([self.rank, self.at_peak], layout=look.plain)
        self._row.add_class("pipeline-row")
        self._drawn = ipywidgets.VBox([self.chart], layout=look.plain)  # once drawn, an anywidget follows no class
        self._said, self._held = look.text("pipeline-page"), look.text("pipeline-page")
        super().__init__([self._said, self._row, self._drawn, self._held], layout=look.plain)
        self.rank.observe(lambda _change: self._draw(), "value")
        self.at_peak.on_click(lambda _button: self._explain(None))
        self.chart.observe(lambda change: self._click(float(change["new"][0])), "chosen")
        self._see(False)

    @property
    def said(self) -> str:
        """What is said above the chart, as HTML."""
        return str(self._said.value)

    @property
    def holders(self) -> str:
        """Who holds the memory, as HTML."""
        return str(self._held.value)

    def follow(self, trace: Trace, *, predicted: Trace | None = None, memory_limit: float | None = None) -> None:
        """Show the memory of `trace`.

        Args:
            trace: what the picture shows.
            predicted: of a run, whose sum is drawn dashed where it knows bytes.
            memory_limit: bytes of each device; None: no limit.
        """
        with self._lock:
            beside = predicted if predicted is not trace and predicted is not None and len(predicted.memory) else None
            self._of = trace, beside, memory_limit
            known = len(trace.memory) > 0
            self._see(known)
            if known:
                self._offer_ranks(trace.n_ranks)
                self._draw()
            else:
                self._info, self._said.value = None, element("p", _UNKNOWN, kind="note")

    def _see(self, known: bool) -> None:
        for part in (self._row, self._drawn, self._held):
            show(part, known)

    def _offer_ranks(self, n_ranks: int) -> None:
        options = [("the fullest", _FULLEST), *((f"rank {rank}", rank) for rank in range(n_ranks))]
        if len(options) != len(self.rank.options):
            chosen = self.rank.value
            with self.rank.hold_trait_notifications():
                self.rank.options = options
                self.rank.value = chosen if chosen < n_ranks else _FULLEST

    def _draw(self) -> None:
        with self._lock:
            if self._of is None or not len(self._of[0].memory):
                return
            trace, predicted, limit = self._of
            rank = None if self.rank.value == _FULLEST else self.rank.value
            info = self._info = memory_stack_info(trace, rank, predicted=predicted)
            self._said.value = memory_summary(trace, info, limit)
            with self.chart.hold_sync():
                self.chart.chart = chart_of(info, limit)
                self._explain(None)

    def _click(self, moment: float) -> None:
        """List the holders at a moment in the chart's unit."""
        with self._lock:
            if self._info is not None:
                at_peak = moment == self.chart.chart["peak"]["time"]
                self._explain(None if at_peak else moment / _clock(self._info))

    def _explain(self, seconds: float | None) -> None:
        """List who holds the memory at a moment; None: at the peak."""
        with self._lock:
            if self._of is None or self._info is None:
                return
            info, at_peak = self._info, seconds is None
            moment = info.peak[0] if seconds is None else seconds
            holders = info.holders if at_peak else peak_holders(self._of[0], info.rank, time=moment)
            self._held.value = holders_page(holders, info, moment, at_peak=at_peak)
            self.chart.moment = moment * _clock(info)


def _clock(info: StackInfo) -> float:
    """What seconds are multiplied with in the chart."""
    return time_unit(float(info.time[-1]), "wall").factor
