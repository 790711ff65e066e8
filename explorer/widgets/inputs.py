"""The inputs that a field can hold, each with its label."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets

from explorer.widgets.helps import HELP
from explorer.widgets.look import Look

_GB = 1e9
_BANDWIDTHS = (math.inf, *(float(gb) * _GB for gb in (400, 200, 100, 50, 25, 10, 5, 2, 1, 0.5, 0.1)))
_MOST = 1e6  # of a size in its unit


def called(label: str) -> dict[str, str]:
    """A control's label, and what it is for."""
    return {"description": label, "tooltip": HELP.get(label, "")}


def dropdown(label: str, options: list[tuple[str, Any]], value: Any, look: Look) -> Any:
    """One of some options, as (title, value)."""
    return ipywidgets.Dropdown(options=options, value=value, **called(label), style=look.lists, layout=look.wide)


def counter(label: str, value: int, most: int, look: Look, *, least: int = 1) -> Any:
    """A whole number."""
    return ipywidgets.IntSlider(value, least, max(most, value), **called(label), style=look.sliders, layout=look.wide)


def text(label: str, value: str, look: Look, example: str) -> Any:
    """A line of text; like `example` while it is empty."""
    shown = {"placeholder": f"like {example}", "continuous_update": False}
    return ipywidgets.Text(value, **called(label), style=look.texts, layout=look.wide, **shown)


def linear(
    label: str, value: float, most: float, step: float, look: Look, *, digits: int = 1, least: float = 0.0
) -> Any:
    """A number up to `most`, or up to `value` where that is more."""
    limits = {"min": least, "max": max(most, value), "step": step, "readout_format": f".{digits}f"}
    return ipywidgets.FloatSlider(value, **limits, **called(label), style=look.sliders, layout=look.wide)


def logarithmic(label: str, value: float, look: Look) -> Any:
    """A number from 0.1 on, in steps of equal factor."""
    highest = max(3.0, math.ceil(math.log10(value)))
    limits = {"base": 10, "min": -1, "max": highest, "step": 0.05, "readout_format": ".4g"}
    return ipywidgets.FloatLogSlider(value, **limits, **called(label), style=look.sliders, layout=look.wide)


def bandwidth(value: float, look: Look) -> Any:
    """Bytes per second of a link, or no limit."""
    values = sorted({*_BANDWIDTHS, value}, reverse=True)
    options = [("unlimited" if math.isinf(one) else f"{one / _GB:g} GB/s", one) for one in values]
    return ipywidgets.SelectionSlider(
        options=options, value=value, **called("Bandwidth"), style=look.sliders, layout=look.wide
    )


def size(label: str, value: float, look: Look) -> Any:
    """An amount to type, 0 or more: sizes differ too much for a slider."""
    limits = {"min": 0.0, "max": max(_MOST, value)}
    return ipywidgets.BoundedFloatText(value, **limits, **called(label), style=look.texts, layout=look.wide)
