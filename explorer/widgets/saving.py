"""What the picture shows, as the text of a file: a page, or what `explorer.load` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.core import Trace
from explorer.errors import InputError
from explorer.io.trace_csv import write_trace_csv
from explorer.io.trace_json import write_trace_json
from explorer.widgets.page import picture_page
from explorer.widgets.timeline import Timeline

_TYPES = {"html": "text/html", "csv": "text/csv", "json": "application/json"}
_VIEW = ("zoom", "hidden", "search", "selected", "numbers")


def saved_text(suffix: str, timeline: Timeline, trace: Trace, state: Mapping[str, Any]) -> dict[str, str]:
    """A file's name (`saved`), `text` and `type`, as the browser then downloads it.

    Args:
        suffix: html for a page that opens anywhere; csv for the events as a table, json for the whole state, both as
            `explorer.save` writes them.
        timeline: the picture.
        trace: what it shows.
        state: of the controls.

    Raises:
        InputError: if there is no such kind of file.
    """
    if suffix not in _TYPES:
        raise InputError(f"a picture is saved as {', '.join(_TYPES)}; got {suffix!r}; try html", argument="suffix")
    if suffix == "html":
        text = picture_page(timeline, title=timeline.label or "Pipeline Explorer")
    elif suffix == "csv":
        text = "".join(write_trace_csv(trace))
    else:
        view = {name: getattr(timeline, name) for name in _VIEW}
        text = "".join(write_trace_json(trace, app=_plain({"controls": dict(state), "view": view})))
    return {"saved": f"{timeline.name}.{suffix}", "text": text, "type": _TYPES[suffix]}


def _plain(value: Any) -> Any:
    """As JSON knows it: numbers of numpy as Python's, and what else it does not know, infinity too, as text."""
    text = json.dumps(value, default=lambda one: one.item() if isinstance(one, np.generic) else str(one))
    return json.loads(text, parse_constant=str)
