"""The lab: faults that the app's next runs are given, such as a slow rank or a death."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets

from explorer.core import Mark
from explorer.errors import InputError
from explorer.execute import Fault
from explorer.execute.fault_words import FAULTS
from explorer.execute.faults import fields_of
from explorer.widgets.look import Look, show

_KINDS = [
    ("Slow rank", "slow"),
    ("Late action", "delay"),
    ("Late message", "delay_message"),
    ("Error in an action", "raise"),
    ("Killed rank", "kill"),
]
_NOTES = {
    "slow": "its rank waits behind each operation, and is timed with it",
    "delay": "its rank waits within it, and is timed with it",
    "delay_message": "what it sends to another rank leaves later; its sender goes on",
    "raise": "the run ends there; what ran until then stays in the picture",
    "kill": "before its first action, or the one named; only in processes",
}


class Lab(ipywidgets.VBox):  # type: ignore[misc]
    """A button that unfolds what faults are made of, and those that there are; its parts are made when it is.

    Attributes:
        unfold: the button.
        faults: for the next runs.
    """

    def __init__(self, look: Look) -> None:
        self.faults: tuple[Fault, ...] = ()
        self.unfold = ipywidgets.ToggleButton(description="Faults", icon="bolt", layout=look.plain)
        self._look = look
        self.fields: dict[str, Any] = {}
        super().__init__([self.unfold], layout=look.plain)
        self.unfold.observe(self._fold, "value")

    def explain(self, error: InputError) -> bool:
        """Show an error that is of faults; whether it is."""
        if error.argument != "faults":
            return False
        self.unfold.value = True
        self._say(self._error, str(error))
        return True

    def happened(self, marks: Sequence[Mark]) -> None:
        """Say which faults have happened in the run that is shown, and when."""
        if self.fields:
            self._say(self._told, "; ".join(f"{mark.text} at {mark.time:.3f} s on rank {mark.rank}" for mark in marks))

    @property
    def error(self) -> str:
        """The error shown, as text."""
        return html.unescape(str(self._error.value)) if self.fields else ""

    @property
    def listed(self) -> str:
        """The faults there are, as text."""
        return html.unescape(str(self._list.value)) if self.fields else ""

    @property
    def told(self) -> str:
        """What is said to have happened, as text."""
        return html.unescape(str(self._told.value)) if self.fields else ""

    def _fold(self, change: Any) -> None:
        if not self.fields:
            self._make()
        show(self._parts, bool(change["new"]))

    def _make(self) -> None:
        look, narrow = self._look, ipywidgets.Layout(width="150px")
        style = {"description_width": "64px"}
        self.kind = ipywidgets.Dropdown(options=_KINDS, layout=ipywidgets.Layout(width="190px"))
        number = {"layout": narrow, "style": style}
        self.fields = {
            "rank": ipywidgets.BoundedIntText(0, min=0, max=4095, description="Rank", **number),
            "action": ipywidgets.Text("", placeholder="like 1F3", description="Action", **number),
            "factor": ipywidgets.BoundedFloatText(2.0, min=1.0, max=100.0, step=0.5, description="Factor", **number),
            "seconds": ipywidgets.BoundedFloatText(0.1, min=0.0, max=60.0, step=0.05, description="Seconds", **number),
            "step": ipywidgets.BoundedIntText(0, min=0, max=99_999, description="Step", **number),
        }
        self.add = ipywidgets.Button(description="Add", icon="plus", layout=ipywidgets.Layout(width="90px"))
        self.clear = ipywidgets.Button(description="Clear", icon="trash", layout=ipywidgets.Layout(width="90px"))
        self._note, self._list, self._told = (look.text("pipeline-note") for _ in range(3))
        self._error = look.text("pipeline-explanation")
        row = [self.kind, *self.fields.values(), self.add, self.clear]
        wrapped = ipywidgets.HBox(row, layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"))
        self._parts = ipywidgets.VBox([wrapped, self._note, self._list, self._error, self._told], layout=look.plain)
        self.kind.observe(self._follow, "value")
        self.add.on_click(self._add)
        self.clear.on_click(self._clear)
        self._follow(None)
        self.children = [self.unfold, self._parts]

    def _follow(self, _change: Any) -> None:
        """Show what the kind of fault is made of."""
        names = self._names()
        for name, field in self.fields.items():
            show(field, name in names)
        self._say(self._note, f"{_NOTES[self.kind.value]}; steps count from 0")

    def _names(self) -> dict[str, str]:
        """Our field → its name in the fault."""
        return {one.name.removeprefix("from_"): one.name for one in fields_of(FAULTS[self.kind.value])}

    def _add(self, _button: Any) -> None:
        values = {name: self.fields[field].value for field, name in self._names().items()}
        values = {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
        try:
            self.faults = (*self.faults, FAULTS[self.kind.value](**values))
        except InputError as error:
            self._say(self._error, str(error))
            return
        self._show()

    def _clear(self, _button: Any) -> None:
        self.faults = ()
        self._show()

    def _show(self) -> None:
        self._say(self._error, "")
        self._say(self._list, f"The next runs have: {'; '.join(map(str, self.faults))}" if self.faults else "")

    def _say(self, place: Any, text: str) -> None:
        value = html.escape(text)
        if place.value != value:
            place.value = value
