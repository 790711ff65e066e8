"""A trace as one JSON file that Perfetto opens and that holds every column exactly.

    {"traceEvents": […],            what ui.perfetto.dev and chrome://tracing show; no reader of ours needs it
     "displayTimeUnit": "ms",
     "distributedInfo": {…},
     "app": {…},                    where it was saved from the app: what its controls said
     "pipelineExplorer": {…}}       the trace, column by column: see explorer.io.document

What Perfetto shows comes first, since it stops at the first name it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from explorer.core import Trace
from explorer.errors import ExplorerError, InputError
from explorer.io.chrome import chrome_lines
from explorer.io.document import as_text, from_document, to_document

_MARK = '\n"pipelineExplorer":'  # no text within JSON holds a bare line feed
_SHOWN = 120  # characters of a parser's complaint


def write_trace_json(trace: Trace, *, app: Mapping[str, Any] | None = None) -> Iterator[str]:
    """`trace` as such a file, in parts.

    Args:
        trace: of any kind.
        app: what else is to be in it, as JSON knows it; nobody reads it back.

    Raises:
        InputError: if its times are not finite.
    """
    besides = "" if app is None else f'\n"app":{json.dumps(app, separators=(",", ":"), allow_nan=False)},'
    return _parts(trace, besides, as_text(to_document(trace)))


def _parts(trace: Trace, besides: str, document: str) -> Iterator[str]:
    before = '{"traceEvents":[\n'
    for lines in chrome_lines(trace):
        yield before
        yield lines
        before = ",\n"
    about = json.dumps({"world_size": trace.n_ranks})
    yield f'\n],\n"displayTimeUnit":"ms",\n"distributedInfo":{about},{besides}{_MARK}'
    yield document
    yield "}\n"


def read_trace_json(text: str, file: str) -> Trace:
    """The trace in such a file.

    Args:
        text: of the file.
        file: as messages call it.

    Raises:
        InputError: if it is broken off, no JSON, or of somebody else.
    """
    try:
        return from_document(_document(text, file))
    except ExplorerError as error:
        if not str(error).startswith(file):
            error.args = (f"{file}: {error}",)
        raise


def _document(text: str, file: str) -> Any:
    """What is under "pipelineExplorer": found by its mark, or, where others have written the file anew, by reading."""
    place = text.rfind(_MARK)
    try:
        if place >= 0:
            return json.JSONDecoder().raw_decode(text, place + len(_MARK))[0]
        whole = json.loads(text)
    except RecursionError:
        raise InputError(f"{file}: a trace is nested a few levels deep; got far more", argument="path") from None
    except ValueError as error:
        raise InputError(
            f"{file}: a trace is whole JSON; got something else ({str(error)[:_SHOWN]}); it may be broken off: "
            "copy or save it again",
            argument="path",
        ) from None
    if isinstance(whole, dict) and "pipelineExplorer" in whole:
        return whole["pipelineExplorer"]
    foreign = isinstance(whole, list) or (isinstance(whole, dict) and "traceEvents" in whole)
    came = "a trace of another program" if foreign else "other JSON"
    raise InputError(
        f"{file}: a trace that can be loaded was saved by explorer.save; got {came}; try a file of explorer.save, or "
        "a folder of explorer.record",
        argument="path",
    )
