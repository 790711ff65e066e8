"""Timeline and memory row together, redrawn no faster than the browser paints."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.core import Action, Kind, Program, Trace
from explorer.errors import ExplorerError, InputError
from explorer.figures.still import still_timeline
from explorer.widgets.chosen import action_of, chosen_rows
from explorer.widgets.columns import MS, pack, pack_lines
from explorer.widgets.curves import Curves, both_curves
from explorer.widgets.gaps import Gaps, pack_gaps
from explorer.widgets.kept import kept_with_trace
from explorer.widgets.numbers import Number
from explorer.widgets.saving import saved_text
from explorer.widgets.timeline import LEGEND_KINDS, LEGENDED_AS, Timeline

if TYPE_CHECKING:
    import pandas as pd

_PATIENCE = 0.7  # seconds after which a frame counts as painted: its page may be hidden or gone
# frames that may be on their way at once: the browser answers but a few times a second, and through a kernel that
# computes the answer takes some tenths of one
_AHEAD = 8
_RECENT = 8  # frames that are kept while bars are moved


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture.

    Attributes:
        predicted: faint where there is something measured.
        measured: of a run, or None.
        label: what a screen reader says.
        whole: the seconds it spans, from 0; frames of one run share it.
        numbers: that belong to it.
        live: whether more will follow by themselves.
        gaps: finds the idle intervals and their causes when the user asks for them, or None.
        state: what the picture is of, such as the values of the controls, for the saved state.
    """

    predicted: Trace | None
    measured: Trace | None
    label: str
    whole: float
    numbers: tuple[Number, ...] = ()
    live: bool = False
    gaps: Callable[[Trace], Gaps] | None = None
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        """What was measured, or else the prediction.

        Raises:
            ValueError: if there is neither.
        """
        shown = self.measured or self.predicted
        if shown is None:
            raise ValueError("a frame has a prediction or a measurement")
        return shown


class Picture:
    """Draws the newest frame; while the browser is still painting, only the latest of those that come waits.

    Attributes:
        timeline: the widget to show.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.timeline = Timeline()
        self._waiting: Frame | None = None
        self._drawn: Frame | None = None
        self._recent: dict[int, Frame] = {}
        self._explained: tuple[Frame, Gaps] | None = None
        self._sent_at = 0.0
        self._timer: threading.Timer | None = None
        self._stale = False
        self._closed = False
        self.timeline.observe(self._painted, "painted")
        self.timeline.observe(self._explain, "explain")
        self.timeline.on_msg(self._asked)

    def has_room(self) -> bool:
        """Whether the browser takes another frame now; only a few may be on their way."""
        outstanding = self.timeline.seq - self.timeline.painted
        unseen = not self.timeline.painted  # nobody answers yet
        return outstanding < _AHEAD or unseen or time.monotonic() - self._sent_at >= _PATIENCE

    def show(self, frame: Frame) -> None:
        """Draw `frame`, now or as soon as the browser is done with the one before."""
        with self._lock:
            if self._closed:
                return
            self._stale = False
            if self.has_room():
                self._draw(frame)
            else:
                self._waiting = frame
                self._give_up_later()

    def selection(self) -> pd.DataFrame:
        """The events selected in the picture, in order of their starts; none if nothing is."""
        selected = self.timeline.selected
        trace = self._trace_of(selected.get("of", ""))
        return trace.to_frame().iloc[chosen_rows(trace, selected)]

    def action_at(self, of: str, row: int, seq: int) -> Action:
        """The action at a place in the packed columns `of` the prediction or the measurement of frame number `seq`.

        Raises:
            InputError: if that frame was too many frames ago: only few are kept, and only while bars can be moved.
        """
        frame = self._drawn if seq == self.timeline.seq else self._recent.get(seq)
        if frame is None:
            raise InputError("a move is made in the picture that is shown; got one of a picture long gone; try again")
        trace = frame.predicted if of == "predicted" and frame.predicted else frame.trace
        return action_of(trace, int(chosen_rows(trace, {"row": row})[0]))

    def selected_action(self) -> Action | None:
        """The action whose bar is selected, None if none is."""
        selected = self.timeline.selected
        if "row" not in selected or self._drawn is None:
            return None
        rows = chosen_rows(self._trace_of(selected.get("of", "")), selected)
        return action_of(self._trace_of(selected.get("of", "")), int(rows[0])) if len(rows) else None

    def _trace_of(self, name: str) -> Trace:
        if self._drawn is None:
            raise ValueError("there is no picture to select in")
        return self._drawn.predicted if name == "predicted" and self._drawn.predicted else self._drawn.trace

    def still(self) -> str:
        """What is drawn, as SVG; "" if nothing is."""
        return still_timeline(self._drawn.trace) if self._drawn else ""

    def mark_stale(self) -> None:
        """Say that the picture is older than the controls, until another is shown."""
        self._stale = self.timeline.stale = True

    def close(self) -> None:
        """Draw nothing any more."""
        with self._lock:
            self._closed = True
            self._waiting = None
            if self._timer:
                self._timer.cancel()
            self.timeline.unobserve_all()

    def _draw(self, frame: Frame) -> None:
        self._waiting = None
        self._sent_at = time.monotonic()
        before, self._drawn = self._drawn, frame
        if before is not None and self.timeline.editing:  # keys may be faster than pictures
            self._recent = {**dict(list(self._recent.items())[1 - _RECENT :]), self.timeline.seq: before}
        n_ranks = frame.trace.n_ranks
        predicted, measured = _curves(frame)
        with self.timeline.hold_sync():
            self.timeline.view = _view(frame, n_ranks, predicted, measured)
            if before is None or (frame.whole != before.whole and not _same_run(frame, before)):
                self.timeline.zoom = []
            if before is None or frame.predicted is not before.predicted:
                self.timeline.predicted = _packed(frame.predicted) if frame.predicted else {}
            if before is None or frame.measured is not before.measured:
                self.timeline.measured = _packed(frame.measured) if frame.measured else {}
            self.timeline.lines = _packed_lines(predicted, measured)
            self.timeline.marks = _packed_marks(frame.trace)
            self.timeline.numbers = [number._asdict() for number in frame.numbers]
            if self.timeline.gaps:
                self.timeline.gaps = {}
            self.timeline.note = _note(frame, predicted, measured)
            self.timeline.label = frame.label
            self.timeline.stale = self._stale
            self.timeline.seq += 1

    def _painted(self, _change: Any) -> None:
        with self._lock:
            if self._waiting is not None and self.has_room():
                self._draw(self._waiting)
            elif self._drawn is not None and not self._drawn.live and not self.timeline.gaps:
                self._explain()  # only once the bars are seen, which it must not hold up

    def _explain(self, _change: Any = None) -> None:
        """Find the causes of idle time, if they are wanted."""
        with self._lock:
            frame = self._drawn
            if frame is None or frame.gaps is None or self._closed:
                return
            if not self.timeline.explain:
                self.timeline.gaps = {}
                return
            try:
                if self._explained is None or self._explained[0] is not frame:
                    self._explained = frame, frame.gaps(frame.trace)
            except ExplorerError as error:  # nobody but the reader of the picture could be told
                self.timeline.note = f"No causes of idle time: {error}"
                return
            self.timeline.gaps = pack_gaps(self._explained[1], frame.trace.n_ranks)

    def _asked(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        """Answer what the browser asks for: the sentence of an idle interval, or a file."""
        with self._lock:
            frame = self._drawn
            if "sentence" in content and self._explained is not None:
                gaps, row = self._explained[1], int(content["sentence"])
                self.timeline.send({"sentence": row, "text": gaps.sentence(int(gaps.order()[row]))})
            elif "save" in content and frame is not None:
                self.timeline.send(saved_text(str(content["save"]), self.timeline, frame.trace, frame.state))

    def _give_up_later(self) -> None:
        if self._timer is None or not self._timer.is_alive():
            self._timer = threading.Timer(_PATIENCE, self._give_up)
            self._timer.daemon = True
            self._timer.start()

    def _give_up(self) -> None:
        with self._lock:
            if self._waiting is not None and not self._closed:
                self._draw(self._waiting)


def _view(frame: Frame, n_ranks: int, predicted: Curves | None, measured: Curves | None) -> dict[str, Any]:
    """What the axes and legends are to show."""
    shown = measured or predicted
    top = 1.08 * max((curve.top for curve in (predicted, measured) if curve), default=0.0) or 1.0
    kinds = _kinds(frame.predicted) | _kinds(frame.measured)
    return {
        "n_ranks": n_ranks,
        "whole": [0.0, frame.whole * MS * 1.005],
        "live": frame.live,
        "top": top,
        "title": shown.title if shown else "",
        "kinds": [place for place, kind in enumerate(LEGEND_KINDS) if kind in kinds],
        "home": _home(frame.trace.program),
    }


def _home(program: Program) -> list[int]:
    """The rank of each stage, on its first route; empty where no rank has more than one."""
    routes = program.placement.routes
    return [] if routes.size == program.n_ranks else routes[0].tolist()


def _note(frame: Frame, predicted: Curves | None, measured: Curves | None) -> str:
    shown = measured or predicted
    darker = "Darker bars: a rank's further stages" if _home(frame.trace.program) else ""
    return ". ".join(filter(None, (shown.note if shown else "", darker)))


def _same_run(frame: Frame, before: Frame) -> bool:
    """Whether both were measured in one run: then a zoom stays, whatever it is a part of."""
    one, other = frame.measured, before.measured
    return one is not None and other is not None and one.program is other.program


@kept_with_trace
def _packed(trace: Trace) -> dict[str, Any]:
    return pack(trace.events, trace.n_ranks)


def _packed_lines(predicted: Curves | None, measured: Curves | None) -> dict[str, Any]:
    shown = measured or predicted
    packed = {
        name: pack_lines(curve.lines)
        for name, curve in (("predicted", predicted), ("measured", measured))
        if curve is not None
    }
    limit = shown.limit._asdict() if shown and shown.limit else None
    return {"ranks": shown.ranks if shown else [], "unit": shown.title if shown else "", "limit": limit, **packed}


def _packed_marks(trace: Trace) -> list[dict[str, Any]]:
    """What is to be said of single moments; times as far as they are known."""
    return [
        {"rank": mark.rank, "time": mark.time * MS, "text": mark.text}
        for mark in trace.marks
        if math.isfinite(mark.time)
    ]


def _kinds(trace: Trace | None) -> set[Kind]:
    if trace is None:
        return set()
    kinds = {Kind(kind) for kind in np.flatnonzero(np.bincount(trace.events.kind)).tolist()}
    return {LEGENDED_AS.get(kind, kind) for kind in kinds}


def _curves(frame: Frame) -> tuple[Curves | None, Curves | None]:
    """Of prediction and measurement, held against the device's memory where one is set."""
    limit = frame.state.get("memory_limit", 0.0)
    if frame.measured is None and frame.predicted is not None:
        return _curve_alone(frame.predicted, limit), None
    return both_curves(frame.predicted, frame.measured, memory_limit=limit)


@kept_with_trace
def _curve_alone(predicted: Trace, memory_limit: float) -> Curves | None:
    return both_curves(predicted, None, memory_limit=memory_limit)[0]


def prepare(predicted: Trace, memory_limit: float) -> None:
    """Work out now what takes long of a picture of this prediction alone; kept with it."""
    _packed(predicted)
    _curve_alone(predicted, memory_limit)
