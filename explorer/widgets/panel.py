"""Run, Stop, Run on change, progress, and what is being shown."""

from __future__ import annotations

import html

import ipywidgets

from explorer.widgets.lab import Lab
from explorer.widgets.look import Look, show
from explorer.widgets.where import Where


class RunPanel(ipywidgets.VBox):  # type: ignore[misc]
    """The buttons of a run, with its progress, its state in one sentence, and its error.

    Attributes:
        run: button.
        stop: button.
        on_change: the switch.
        where: ranks work.
        lab: where runs are given faults.
    """

    def __init__(self, look: Look, *, run_on_change: bool, backend: str | None = None) -> None:
        narrow = ipywidgets.Layout(width="110px")
        self.run = ipywidgets.Button(description="Run", icon="play", button_style="primary", layout=narrow)
        self.stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True, layout=narrow)
        self.on_change = ipywidgets.Checkbox(
            run_on_change, description="Run on change", indent=False, layout=ipywidgets.Layout(width="140px")
        )
        self.where = Where(look, chosen=backend)
        self._progress = ipywidgets.FloatProgress(
            0.0,
            min=0.0,
            max=1.0,
            layout=ipywidgets.Layout(width="250px"),
            style={"description_width": "90px"},
        )
        show(self._progress, False)  # until there is one
        self._status = look.text("pipeline-status")
        self._error = look.text("pipeline-explanation")
        parts = [self.run, self.stop, self.on_change, self.where, self._progress]
        row = ipywidgets.HBox(parts, layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"))
        self.lab = Lab(look)
        super().__init__([row, self.where.note, self.lab, self._error, self._status], layout=look.plain)
        self.add_class("pipeline-run")
        self.fail("")

    @property
    def error(self) -> str:
        """The error shown, as text."""
        return html.unescape(str(self._error.value))

    @property
    def status(self) -> str:
        """The state shown, as text."""
        return html.unescape(str(self._status.value))

    def possible(self, possible: bool) -> None:
        """Whether the controls say something that can run."""
        self.run.disabled = not possible

    def tell(self, text: str) -> None:
        """What is being shown, in a sentence."""
        value = html.escape(text)
        if self._status.value != value:
            self._status.value = value

    def fail(self, text: str) -> None:
        """What went wrong, in a sentence; nothing if empty."""
        value = html.escape(text)
        if self._error.value != value:
            self._error.value = value

    def count_steps(self, step: int, done: float, n_steps: int) -> None:
        """How much of this step is done, from 0 to 1."""
        self.progress(done, f"Step {step + 1} of {n_steps}")

    def progress(self, done: float, words: str = "") -> None:
        """How much of a step is done, 0 to 1, and which step that is."""
        self._progress.value = done
        if self._progress.description != words:
            self._progress.description = words

    def running(self, runs: bool) -> None:
        """Whether a run goes on, so that Stop has something to stop."""
        self.stop.disabled = not runs
        if runs:
            show(self._progress, True)  # from now on, so that what lies below does not move with each run
        self._progress.bar_style = "info" if runs else ""
