"""What if: the numbers against those before or pinned, and the selected action delayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from explorer.core import COMPUTE_KINDS, Action
from explorer.figures.units import time_unit
from explorer.widgets.around import Around
from explorer.widgets.look import Look, show
from explorer.widgets.reference import Reference

_PIN = "Pin these numbers"


class WhatIf:
    """A button that pins the numbers, and a field that delays the action whose bar is selected.

    Args:
        around: the app.
        change: called with what is about to change.
        look: of the widgets.

    Attributes:
        reference: what the numbers are compared with.
        pin: the button.
        delay: ms that the selected action takes besides; unseen while none is.
    """

    def __init__(self, around: Around, change: Callable[[str], None], look: Look) -> None:
        self._around, self._change = around, change
        self.reference = Reference()
        self.pin = ipywidgets.ToggleButton(
            description=_PIN,
            icon="thumb-tack",
            tooltip="Compare what comes with what is shown now",
            layout=ipywidgets.Layout(width="auto"),
        )
        self.delay = ipywidgets.BoundedFloatText(
            0.0, min=0.0, max=1e6, step=1.0, layout=ipywidgets.Layout(width="240px"), style=look.texts
        )
        self._chosen: Action | None = None
        self._choosing = False
        show(self.delay, False)
        self.pin.observe(self._guarded(self._pin), "value")
        self.delay.observe(self._guarded(self._delay), "value")
        around.picture.timeline.observe(self._guarded(self._choose), "selected")

    def _guarded(self, then: Callable[[], None]) -> Callable[[Any], None]:
        return lambda _change: self._around.act(then)

    def _pin(self) -> None:
        self.reference.pin(self.pin.value)
        trace = self.reference.pinned
        self.pin.description = _PIN
        if trace is not None:
            self.pin.description = f"Pinned: {time_unit(trace.makespan, 'wall').show(trace.makespan)}"
        if not self._around.picture.timeline.measured:  # a run stays in the picture
            self._around.redraw()

    def _choose(self) -> None:
        """Offer to delay the action that is selected."""
        selected = self._around.picture.selected_action()
        self._chosen = selected if selected is not None and selected.kind in COMPUTE_KINDS else None
        fields = self._around.controls.fields
        is_late = str(self._chosen) == fields["late_action"].value.strip()
        self.delay.description = f"Delay {self._chosen} by, ms" if self._chosen else ""
        show(self.delay, self._chosen is not None)
        self._choosing = True  # showing what is, is no wish
        try:
            self.delay.value = fields["late"].value if is_late else 0.0
        finally:
            self._choosing = False

    def _delay(self) -> None:
        if self._choosing or self._chosen is None:
            return
        self._change(f"delay of {self._chosen}")
        slider = self._around.controls.fields["late"].control
        slider.max = max(slider.max, self.delay.value)
        self._around.set_fields({"late_action": str(self._chosen), "late": self.delay.value})
