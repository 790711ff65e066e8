"""What the picture shows, as the text of a file: a page, a table, or the whole state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.core import Trace
from explorer.errors import InputError
from explorer.widgets.page import picture_page
from explorer.widgets.timeline import Timeline

_TYPES = {"html": "text/html", "csv": "text/csv", "json": "application/json"}
_VIEW = ("zoom", "hidden", "search", "selected", "numbers")


def saved_text(suffix: str, timeline: Timeline, trace: Trace, state: Mapping[str, Any]) -> dict[str, str]:
    """A file's name (`saved`), `text` and `type`, as the browser then downloads it.

    Args:
        suffix: html for a page that opens anywhere, csv for the events as a table, json for the whole state.
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
        text = trace.to_frame().to_csv(index=False)
    else:
        text = _whole_state(timeline, trace, state)
    return {"saved": f"{timeline.name}.{suffix}", "text": text, "type": _TYPES[suffix]}


def _whole_state(timeline: Timeline, trace: Trace, state: Mapping[str, Any]) -> str:
    """Controls, what of the picture the user chose, and the events column by column; seconds and bytes."""
    columns = {name: column.tolist() for name, column in trace.events.columns().items()}
    whole = {
        "format": "pipeline-explorer-app",
        "version": 1,
        "program": trace.program.name,
        "clock": trace.clock,
        "n_ranks": trace.n_ranks,
        "n_micro_batches": trace.program.n_micro_batches,
        "controls": dict(state),
        "view": {name: getattr(timeline, name) for name in _VIEW},
        "events": columns,
    }
    return json.dumps(whole, default=_as_json, separators=(",", ":"))


def _as_json(value: Any) -> Any:
    """Numbers of numpy as Python's, and what else JSON does not know as text."""
    return value.item() if isinstance(value, np.generic) else str(value)
