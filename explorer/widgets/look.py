"""Layouts and styles, one of each for the whole app: every one is a message before the first picture."""

from __future__ import annotations

from typing import Any

import ipywidgets
from ipywidgets.widgets.widget_description import DescriptionStyle
from ipywidgets.widgets.widget_int import SliderStyle
from ipywidgets.widgets.widget_string import HTMLStyle, TextStyle

_LABELS = "136px"


class Look:
    """What the app's widgets share.

    Attributes:
        plain: layout of what lies as its class says.
        wide: layout of what fills its column.
        lists: style of dropdowns.
        texts: style of text fields.
        sliders: style of sliders.
    """

    def __init__(self) -> None:
        self.plain = ipywidgets.Layout()
        self.wide = ipywidgets.Layout(width="calc(100% - 4px)")  # with its margins
        self.lists = DescriptionStyle(description_width=_LABELS)
        self.texts = TextStyle(description_width=_LABELS)
        self.sliders = SliderStyle(description_width=_LABELS)
        self._html = HTMLStyle()

    def text(self, name: str) -> Any:
        """A paragraph with this class; the style sheet hides it while it says nothing."""
        paragraph = ipywidgets.HTML(layout=self.plain, style=self._html)
        paragraph.add_class(name)
        return paragraph


def show(widget: Any, visible: bool) -> None:
    """Whether `widget`, whose layout others share, is to be seen."""
    (widget.remove_class if visible else widget.add_class)("pipeline-hidden")
