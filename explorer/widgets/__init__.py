"""ipywidgets apps: controls + figures; they hold state and compute nothing. Loaded when one is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from explorer.widgets.explore import explore

if TYPE_CHECKING:
    from explorer.widgets.explorer import Explorer

__all__ = ["Explorer", "explore"]


def __getattr__(name: str) -> Any:
    if name == "Explorer":
        return importlib.import_module("explorer.widgets.explorer").Explorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
