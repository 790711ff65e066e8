"""The app: controls, numbers, and one picture that predicts at once and measures when asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import ipywidgets

from explorer.core import Program, Trace
from explorer.errors import ExplorerError, InputError, RunStopped
from explorer.widgets.ahead import Ahead, one_further
from explorer.widgets.causes import causes_of
from explorer.widgets.closing import close_tree
from explorer.widgets.controls import Controls, reruns
from explorer.widgets.look import Look
from explorer.widgets.models import OwnModel, check_runs, starter, title, titles
from explorer.widgets.numbers import Number, numbers
from explorer.widgets.panel import RunPanel
from explorer.widgets.picture import Frame, Picture
from explorer.widgets.places import Places
from explorer.widgets.runner import Job, Runner, check_small
from explorer.widgets.settings import Prediction, Settings, is_kept
from explorer.widgets.under import Under
from explorer.widgets.where import KERNEL, PROCESSES
from explorer.widgets.words import (
    MEASURED,
    PREDICTED,
    STOPPING,
    calm,
    label,
    not_begun,
    origin_of,
    parity,
    sentence,
    until,
)

if TYPE_CHECKING:
    import pandas as pd

    from explorer.execute import Run

_FAINT = "Faint: predicted from the costs this run measured"
_P = ParamSpec("_P")


def _shown_in_app(
    method: Callable[Concatenate[Explorer, _P], None],
) -> Callable[Concatenate[Explorer, _P], None]:
    """What `method` raises becomes a sentence in the app: callbacks and threads have nobody else to tell."""

    @wraps(method)
    def guarded(self: Explorer, *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            with self._lock:
                if not self._closed:
                    method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001
            self.panel.fail(sentence(error))

    return guarded  # type: ignore[return-value]


class Explorer(ipywidgets.VBox):  # type: ignore[misc]
    """The app: it holds state and computes nothing, for the simulator predicts and `execute` runs.

    Attributes:
        controls: the fields.
        panel: the buttons of a run and what they say.
        under: the picture: pins, delays and edits.
        places: what lies below the picture: why ranks wait, all schedules side by side, the code.
        prediction: the last that was possible.
        run: the last run that went through, or None.
    """

    _closed = True  # until it is complete

    def __init__(
        self,
        settings: Settings,
        own: OwnModel | None = None,
        *,
        run_on_change: bool = True,
        backend: str | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._own = own
        self.prediction: Prediction | None = None
        self.run: Run | None = None
        self._shown: Job | None = None  # the run in the picture; None: the prediction alone
        look = Look()
        self.controls = Controls(settings, titles(own), look)
        self.panel = RunPanel(look, run_on_change=run_on_change, backend=backend)
        self._picture = Picture(self._lock)
        self._runner = Runner(
            on_start=self._start,
            on_frame=self._follow,
            on_end=self._finish,
            has_room=self._picture.has_room,
        )
        self._ahead = Ahead(may=lambda: not self._runner.busy)
        self._of = settings  # what was predicted last
        self.under = Under(self.controls, self._picture, self._act, self._redraw, look)
        self.places = Places(look, self.controls.settings, self._open)
        super().__init__([self.controls, self.panel, self._picture.timeline, self.under, self.places])
        self.add_class("pipeline-explorer")
        self._closed = False
        self._predict()
        self.controls.on_change(self._changed)
        self.panel.run.on_click(self._run_clicked)
        self.panel.stop.on_click(self._stop_clicked)
        self.panel.where.control.observe(self._moved, "value")

    @property
    def timeline(self) -> Any:
        """The widget that draws the bars."""
        return self._picture.timeline

    @property
    def program(self) -> Program | None:
        """The order that is shown, with what was edited by hand; None before the first that was possible."""
        return self.prediction.program if self.prediction else None

    @property
    def selection(self) -> pd.DataFrame:
        """The events selected in the picture, in order of their starts: a bar, or all in a stretch on some ranks."""
        return self._picture.selection()

    def close(self) -> None:
        """Stop what runs, end the threads, and free every widget of the app."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._ahead.close()
        self._runner.close()
        self._picture.close()
        self.places.end()
        close_tree(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The app; and a still of it for where no kernel is, such as a saved notebook turned into a page."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        still = self._picture.still()
        return {**bundle, "image/svg+xml": still} if still else bundle

    def __repr__(self) -> str:
        settings = self.controls.settings()
        names = ("schedule", "n_ranks", "n_chunks", "n_micro_batches")
        parts = [f"{name}={getattr(settings, name)!r}" for name in names]
        if self.prediction and not self.timeline.stale:
            trace = self.prediction.trace
            parts += [f"makespan={trace.makespan:.4g}", f"bubble_ratio={trace.bubble_ratio:.4f}"]
        return f"Explorer({', '.join(parts)})"

    # ── the prediction ──────────────────────────────────────────────────────────────────────────────────────────

    @_shown_in_app
    def _changed(self, name: str) -> None:
        if self.controls.following or self.under.setting:
            return
        self.under.change(name)
        legal = self._predict()
        self.under.tell()
        self.controls.describe()
        if reruns(name):
            self._rerun(legal)

    @_shown_in_app
    def _moved(self, _change: Any) -> None:
        if not self.panel.where.following:
            self._rerun(self._predict())

    def _rerun(self, legal: bool) -> None:
        if self._halt() and legal:
            self.panel.tell(f"The run was stopped, for its numbers were changed. {PREDICTED}")
        if legal and self.panel.on_change.value:
            self._submit(by_itself=True)

    def _redraw(self) -> bool:
        self._halt()
        return self._predict()

    @_shown_in_app
    def _act(self, action: Callable[[], None]) -> None:
        action()

    @_shown_in_app
    def _stale(self, error: ExplorerError) -> None:
        self._picture.mark_stale()
        self._nothing_wrong()
        self.panel.possible(False)
        if not (isinstance(error, InputError) and self.controls.explain(error)):
            self.panel.fail(sentence(error))
        self.panel.tell("The picture shows the last numbers that were possible")

    def _predict(self) -> bool:
        """Show what the simulator says to the controls; whether it could say anything.

        The picture's message leaves before all others: the browser takes them in order.
        """
        self._shown = None
        before, self._of = self._of, self.controls.settings()
        self._ahead.await_this(self._of)
        try:
            self.prediction = self._of.predict()
        except ExplorerError as error:
            self._stale(error)
            return False
        trace = self.prediction.trace
        said = numbers(trace, None, against=self.under.against(trace))
        self._show(Frame(trace, None, label(trace, PREDICTED, said), until(trace), said))
        self._nothing_wrong()
        self.panel.possible(True)
        self.panel.where.follow(trace.n_ranks)
        self.panel.tell(PREDICTED)
        self.panel.progress(0.0)
        self.under.follow(trace)
        self._ahead.expect(one_further(before, self._of) if is_kept(trace.program) else None)
        return True

    def _nothing_wrong(self) -> None:
        self.controls.clear()
        self.panel.fail("")

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────

    @_shown_in_app
    def _run_clicked(self, _button: Any) -> None:
        if self._predict():
            self._submit()
            self.panel.running(True)

    @_shown_in_app
    def _stop_clicked(self, _button: Any) -> None:
        if self._halt():
            self.panel.tell(STOPPING)
        else:
            self._nothing_began()

    def _submit(self, *, by_itself: bool = False) -> None:
        if self.prediction is not None:
            settings = self.controls.settings()
            backend = self.panel.where.backend
            start = starter(settings, self.prediction, self._own, backend, self.panel.lab.faults)
            self._runner.submit(Job(settings, self.prediction, start, backend, by_itself))

    def _start(self, job: Job) -> None:
        """Begin `job`; one that nobody asked for only if it can run and is small, for until then all is as it was."""
        if job.by_itself:
            check_runs(job.prediction.program)
            check_small(job)
        self.places.settle()
        self._begin(job)

    @_shown_in_app
    def _begin(self, job: Job) -> None:
        self._shown = job
        self.panel.fail("")
        self.panel.progress(0.0)
        self.panel.running(True)
        ranks = ", its ranks' processes" if job.backend == PROCESSES else ""
        named = title(job.settings.model, self._own)
        self.panel.tell(f"Preparing {named}: loading torch{ranks}, building the model, warming up")

    @_shown_in_app
    def _follow(self, job: Job) -> None:
        if job is self._shown and job.recorder.predicted() is not None:
            self.panel.count_steps(*job.recorder.step_progress, job.settings.n_steps)
            self.panel.tell(f"Running {title(job.settings.model, self._own)} · {origin_of(job)}. {_FAINT}")
            self._show_until_now(job, live=True)

    @_shown_in_app
    def _finish(self, job: Job, run: Run | None, error: BaseException | None) -> None:
        self.panel.running(self._runner.waiting)
        if job is self._shown:
            self._show_end(job, run, error)
        elif error is not None and self._shown is None and job.prediction is self.prediction:
            self.panel.tell(not_begun(error))
        elif self._shown is None and self.panel.status == STOPPING:  # another was to follow, and was stopped with it
            self._nothing_began()
        self.places.release()

    def _halt(self) -> bool:
        """Stop what runs, and what waits for its turn; whether anything ran, and so will tell of its end."""
        ran = self._runner.stop()
        if not ran:
            self.panel.running(False)
        return ran

    def _nothing_began(self) -> None:
        self.panel.tell(f"Stopped before it began. {PREDICTED}")

    def _show_end(self, job: Job, run: Run | None, error: BaseException | None) -> None:
        if run is not None:
            self.run = run
            self.panel.count_steps(*job.recorder.step_progress, job.settings.n_steps)
            self.panel.tell(f"Ran {title(job.settings.model, self._own)} · {origin_of(job)}. {_FAINT}")
            predicted = run.predicted or job.prediction.trace
            said = numbers(predicted.step(0), run.trace, run.losses, parity(run))
            self._show_run(predicted, run.trace, said)
        elif isinstance(error, RunStopped):
            self.panel.tell(f"Stopped at {job.recorder.progress:.0%} of all steps · {origin_of(job)}. {_FAINT}")
            self._show_until_now(job)
        elif error is not None:
            self._show_until_now(job)
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        lab, controls = self.panel.lab, self.controls
        if not (isinstance(error, InputError) and (lab.explain(error) or controls.explain(error))):
            self.panel.fail(sentence(error))
        self.panel.tell("The run failed; the picture shows what was measured until then, or what was there before")

    # ── the picture ─────────────────────────────────────────────────────────────────────────────────────────────

    def _show_until_now(self, job: Job, *, live: bool = False) -> None:
        predicted = job.recorder.predicted()
        if predicted is None:
            return
        measured, losses = job.recorder.trace(), job.recorder.losses
        said = numbers(predicted.step(0), measured.step(len(losses) - 1) if losses else None, losses)
        self._show_run(predicted, measured, said, live=live)

    def _show_run(self, predicted: Trace, measured: Trace, said: tuple[Number, ...], *, live: bool = False) -> None:
        self.panel.lab.happened(measured.marks)
        spans = [until(trace) for trace in (predicted, measured)]
        shown = measured if len(measured.events) else None
        whole = calm(max(spans), spans[0]) if live else max(spans)
        origin = MEASURED[PROCESSES if measured.clock == "real" else KERNEL]
        self._show(Frame(predicted, shown, label(predicted, origin, said), whole, said, live))

    def _show(self, frame: Frame) -> None:
        settings = self.controls.settings()
        self._picture.show(replace(frame, gaps=causes_of, state=asdict(settings)))
        if not frame.live:
            self.places.follow(frame.trace, settings, frame.predicted)
        elif frame.measured is not None:
            self.places.follow_run(frame.measured, settings, frame.predicted)

    @_shown_in_app
    def _open(self, values: Mapping[str, Any]) -> None:
        """Go where a cell of a sweep, or a row of a comparison, stands."""
        self.controls.go_to(values)
        self._changed("schedule")
