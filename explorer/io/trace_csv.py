"""A trace as a table that anything reads: a row an event, codes spelled out, everything else in the first line.

    # pipeline-explorer trace {"version":1,"clock":"real","program":{…},"memory":{…},…}
    step,rank,stage,micro_batch,segment,kind,slot,stream,start,end,wait,bytes,peer,origin
    0,0,0,0,0,F,0,compute,0.0,1.0,0.0,0,-1,measured

`pandas.read_csv(path, comment="#")` skips the first line. Seconds and bytes, as in explorer.core.Events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import numpy as np

from explorer.core import Events, Kind, Origin, Stream, Trace
from explorer.errors import ExplorerError, InputError
from explorer.io.document import as_text, from_document, to_document

MARK = "# pipeline-explorer trace "
_CODES = {"kind": Kind, "stream": Stream, "origin": Origin}
_TIMES = [name for name, dtype in Events.DTYPES.items() if dtype == "float64"]
_BLOCK = 50_000  # rows that become text at once
_SHOWN = 120  # characters of a parser's complaint


def write_trace_csv(trace: Trace) -> Iterator[str]:
    """`trace` as such a file, in parts.

    Raises:
        InputError: if its times are not finite.
    """
    document = to_document(trace)
    columns = document.pop("events")
    about = as_text(document).replace("\n", "")
    spelled = [_spelled(name, values) for name, values in columns.items()]
    titles = ",".join(columns)
    return _parts(f"{MARK}{about}\n{titles}\n", spelled, len(trace.events))


def _parts(head: str, columns: list[list[Any]], n: int) -> Iterator[str]:
    yield head
    for first in range(0, n, _BLOCK):
        rows = zip(*(column[first : first + _BLOCK] for column in columns), strict=True)
        yield "".join(",".join(map(str, row)) + "\n" for row in rows)


def _spelled(name: str, values: list[Any]) -> list[Any]:
    if name not in _CODES:
        return values
    words = _words(name)
    return [words[value] for value in values]


def _words(name: str) -> list[str]:
    """As `Events.to_frame` spells them."""
    return [code.name if name == "kind" else code.name.lower() for code in _CODES[name]]


def read_trace_csv(text: str, file: str) -> Trace:
    """The trace in such a file.

    Args:
        text: of the file, which begins with `MARK`.
        file: as messages call it.

    Raises:
        InputError: if the first line or a row cannot be.
    """
    head, _, body = text[len(MARK) :].partition("\n")
    try:
        document = json.loads(head)
        if not isinstance(document, dict):
            raise InputError("the first line of a trace holds what its rows do not; got something else")
        codes = document.get("codes")
        document["codes"] = {**codes, **_LEGEND} if isinstance(codes, dict) else codes
        document["events"] = _events(body)
        return from_document(document)
    except ExplorerError as error:
        error.args = (f"{file}: {error}",)
        raise
    except (ValueError, RecursionError) as error:  # of both parsers
        raise InputError(
            f"{file}: a trace is a table behind one line of JSON; got something else ({str(error)[:_SHOWN]}); save it "
            "again",
            argument="path",
        ) from None


_MOST_COLUMNS = 256  # others may have put some beside ours
_LEGEND = {name: [code.name for code in codes] for name, codes in _CODES.items()}  # our own, in which words are read


def _events(body: str) -> dict[str, Any]:
    import pandas as pd

    n_columns = 1 + body.partition("\n")[0].count(",")
    if n_columns > _MOST_COLUMNS:  # to tell a million of one name apart takes pandas for ever
        raise InputError(f"the rows of a trace have at most {_MOST_COLUMNS} columns; got {n_columns:,}; save it again")
    # pandas' own reading of a time may be off in its last digit
    times: Any = dict.fromkeys(_TIMES, "str")
    table = pd.read_csv(StringIO(body), keep_default_na=False, dtype=times, low_memory=False)
    lacks = [name for name in Events.DTYPES if name not in table.columns]
    if lacks:
        raise InputError(f"the rows of a trace have the columns {', '.join(Events.DTYPES)}; {lacks[0]} is missing")
    return {name: _column(name, table[name]) for name in Events.DTYPES}


def _column(name: str, cells: Any) -> list[Any]:
    if name in _CODES:
        words = _words(name)
        codes = cells.astype(str).map({word: number for number, word in enumerate(words)})
        if codes.isna().any():
            row = int(np.flatnonzero(codes.isna())[0])
            raise InputError(f"{name} is one of {', '.join(words)}; got {str(cells.iloc[row])[:40]!r} in row {row:,}")
        cells = codes.astype("int64")
    listed: list[Any] = cells.tolist()
    return [float(cell) for cell in listed] if name in _TIMES else listed
