"""Freeing widgets: ipywidgets keeps every open one, and closing a box leaves its children open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets


def close_tree(widget: ipywidgets.Widget) -> None:
    """Close `widget` and all that it holds: children, layouts, styles, and what its other traits refer to."""
    for one in list(_tree(widget, set())):
        ipywidgets.Widget.close(one)  # not its own, which may be what called this


def _tree(widget: ipywidgets.Widget, seen: set[int]) -> Iterator[ipywidgets.Widget]:
    if id(widget) in seen:
        return
    seen.add(id(widget))
    yield widget
    for name in widget.trait_names(sync=True):
        for held in _widgets_in(getattr(widget, name, None)):
            yield from _tree(held, seen)


def _widgets_in(value: Any) -> Iterator[ipywidgets.Widget]:
    if isinstance(value, ipywidgets.Widget):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from (one for one in value if isinstance(one, ipywidgets.Widget))
