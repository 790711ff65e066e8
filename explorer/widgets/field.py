"""A control with its explanation under it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from explorer.widgets.look import Look, show

_MOST_OFFERED = 2


class Field(ipywidgets.VBox):  # type: ignore[misc]
    """A control; under it, when it is at fault, why, and buttons that set it right.

    Explanation and buttons are made when they are first needed and kept: most fields never need them.

    Attributes:
        control: what holds the value.
    """

    def __init__(self, control: Any, look: Look) -> None:
        self.control = control
        self._look = look
        self._explanation: Any = None
        self._offers: list[Any] = []
        self._legal: tuple[Any, ...] = ()
        self.note = look.text("pipeline-note")
        super().__init__([control, self.note], layout=look.plain)
        self.add_class("pipeline-field")

    @property
    def value(self) -> Any:
        """The control's value."""
        return self.control.value

    def say(self, text: str) -> None:
        """A quiet line under the control; nothing if empty."""
        value = html.escape(text)
        if self.note.value != value:
            self.note.value = value

    def explain(self, message: str, legal: tuple[Any, ...] = ()) -> None:
        """Say what is wrong here, and offer the nearest values that would do."""
        self._make_once()
        self._explanation.value = html.escape(message)
        self._legal = legal[:_MOST_OFFERED]
        for place, button in enumerate(self._offers):
            offered = place < len(self._legal)
            button.description = f"Use {self._legal[place]}" if offered else ""
            show(button, offered)

    def clear(self) -> None:
        """Nothing is wrong here."""
        if self._explanation is not None:
            self.explain("")

    @property
    def explanation(self) -> str:
        """What is said to be wrong, as text."""
        return html.unescape(str(self._explanation.value)) if self._explanation else ""

    def _make_once(self) -> None:
        if self._explanation is None:
            self._explanation = self._look.text("pipeline-explanation")
            self._offers = [ipywidgets.Button(layout=ipywidgets.Layout(width="auto")) for _ in range(_MOST_OFFERED)]
            for place, button in enumerate(self._offers):
                button.on_click(self._applier(place))
            row = ipywidgets.HBox(self._offers, layout=self._look.plain)
            self.children = [self.control, self.note, self._explanation, row]

    def _applier(self, place: int) -> Callable[[Any], None]:
        def apply(_button: Any) -> None:
            if place < len(self._legal):
                self.control.value = self._legal[place]

        return apply
