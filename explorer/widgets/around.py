"""The app as its parts below the picture see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from explorer.widgets.controls import Controls
from explorer.widgets.picture import Picture


class Around:
    """What a part needs of the app around it.

    Attributes:
        controls: the fields.
        picture: what is drawn.
        act: calls what it is given, under the app's lock, and shows what that raises.
        redraw: predicts from the controls anew.
        setting: whether several fields are being set at once, of which nobody is to be told one by one.
    """

    def __init__(
        self,
        controls: Controls,
        picture: Picture,
        act: Callable[[Callable[[], None]], None],
        redraw: Callable[[], bool],
    ) -> None:
        self.controls, self.picture, self.act, self.redraw = controls, picture, act, redraw
        self.setting = False

    def set_fields(self, values: Mapping[str, Any]) -> None:
        """Set fields, and predict once."""
        self.setting = True
        try:
            for name, value in values.items():
                self.controls.fields[name].control.value = value
        finally:
            self.setting = False
        self.redraw()
        self.controls.describe()
