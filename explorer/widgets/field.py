"""A control with its explanation under it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

_MOST_OFFERED = 2


class Field(ipywidgets.VBox):  # type: ignore[misc]
    """A control; under it, when it is at fault, why, and buttons that set it right.

    All parts exist from the beginning and are hidden: no widget is ever made in a callback.

    Attributes:
        control: what holds the value.
    """

    def __init__(self, control: Any) -> None:
        self.control = control
        self._explanation = ipywidgets.HTML()
        self._explanation.add_class("pipeline-explanation")
        self._offers = [ipywidgets.Button(layout=ipywidgets.Layout(width="auto")) for _ in range(_MOST_OFFERED)]
        self._legal: tuple[Any, ...] = ()
        for place, button in enumerate(self._offers):
            button.on_click(self._applier(place))
        self._row = ipywidgets.HBox(self._offers)
        self.note = ipywidgets.HTML()
        self.note.add_class("pipeline-note")
        super().__init__([control, self.note, self._explanation, self._row])
        self.add_class("pipeline-field")
        self.say("")
        self.clear()

    @property
    def value(self) -> Any:
        """The control's value."""
        return self.control.value

    def say(self, text: str) -> None:
        """A quiet line under the control; nothing if empty."""
        _show(self.note, html.escape(text))

    def explain(self, message: str, legal: tuple[Any, ...] = ()) -> None:
        """Say what is wrong here, and offer the nearest values that would do."""
        _show(self._explanation, html.escape(message))
        self._legal = legal[:_MOST_OFFERED]
        for place, button in enumerate(self._offers):
            offered = place < len(self._legal)
            button.description = f"Use {self._legal[place]}" if offered else ""
            button.layout.display = None if offered else "none"
        self._row.layout.display = None if self._legal else "none"

    def clear(self) -> None:
        """Nothing is wrong here."""
        if self._explanation.value or self._row.layout.display != "none":
            self.explain("")

    @property
    def explanation(self) -> str:
        """What is said to be wrong, as text."""
        return html.unescape(str(self._explanation.value))

    def _applier(self, place: int) -> Callable[[Any], None]:
        def apply(_button: Any) -> None:
            if place < len(self._legal):
                self.control.value = self._legal[place]

        return apply


def _show(widget: Any, value: str) -> None:
    if widget.value != value:
        widget.value = value
    display = None if value else "none"
    if widget.layout.display != display:
        widget.layout.display = display
