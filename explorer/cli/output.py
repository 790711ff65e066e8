"""What the commands print: JSON for machines, a table and a small picture for people."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.core import Trace
from explorer.core.metrics import compute_rows
from explorer.errors import InputError
from explorer.figures.palette import KIND_LETTERS
from explorer.figures.units import time_unit
from explorer.figures.words import CLOCKS

_WIDEST = 100  # columns of a picture
_MOST_LINES = 32  # ranks that a picture or a table shows


def to_json(values: Mapping[str, Any]) -> str:
    """`values` as one JSON object.

    Raises:
        InputError: if a number is infinite or undefined, which JSON cannot say.
    """
    try:
        return json.dumps(values, indent=2, allow_nan=False)
    except ValueError:
        raise InputError("times must stay below 1e308 to be added up; got larger ones; try smaller costs") from None


def size_of(trace: Trace) -> dict[str, Any]:
    """What was run, for JSON."""
    program = trace.program
    return {
        "schedule": program.name,
        "n_ranks": program.n_ranks,
        "n_stages": program.n_stages,
        "n_micro_batches": program.n_micro_batches,
        "clock": trace.clock,
    }


def report(trace: Trace, columns: Mapping[str, Sequence[str]] | None = None) -> str:
    """The measures of `trace` as a table with a line a rank, and a picture where it fits the terminal.

    Args:
        trace: what happened.
        columns: title → a text for each rank, added to the table.
    """
    program = trace.program
    unit = time_unit(trace.makespan, trace.clock)
    stages = f" ({program.n_stages} stages)" if program.n_stages != program.n_ranks else ""
    head = (
        f"{program.name}: {program.n_ranks} ranks{stages}, {program.n_micro_batches} micro-batches; "
        f"{CLOCKS.get(trace.clock, trace.clock)}\n"
        f"makespan  {unit.show(trace.makespan)}\n"
        f"idle      {trace.bubble_ratio:.1%} of ranks × makespan; {trace.bubble_overhead:.1%} of busy time\n"
    )
    share = trace.idle_per_rank / trace.makespan if trace.makespan else np.zeros(trace.n_ranks)
    texts = {
        "rank": [str(rank) for rank in range(trace.n_ranks)],
        "idle": [unit.show(idle) for idle in trace.idle_per_rank],
        "of makespan": [f"{part:.1%}" for part in share],
        "peak in flight": [str(count) for count in trace.peak_in_flight],
        **(columns or {}),
    }
    drawn = picture(trace, width=min(shutil.get_terminal_size().columns, _WIDEST))
    return "\n".join(part for part in (head, table(texts), drawn) if part)


def picture(trace: Trace, *, width: int) -> str:
    """The last step drawn to scale in `width` columns, a line a rank; "" if that is too narrow to be read."""
    if trace.n_ranks > _MOST_LINES or not trace.steps:
        return ""
    events = trace.step(trace.steps[-1]).events
    events = events.take(compute_rows(events))
    duration = events.end - events.start
    if not len(duration) or not trace.makespan or duration.min() <= 0:
        return ""
    margin = len(f"rank {trace.n_ranks - 1}  ")
    begin, span = events.start.min(), events.end.max() - events.start.min()
    chunked = trace.program.n_stages > trace.n_ranks
    label = 1 + len(str(trace.program.n_micro_batches - 1)) + chunked * (1 + len(str(trace.program.n_stages - 1)))
    scale = min((width - margin) / span, label / duration.min())  # columns a second
    if np.median(duration) * scale < 1.5 or duration.min() * scale < 1 or (chunked and duration.min() * scale < label):
        return ""
    lines = [[" "] * (math.ceil(span * scale) + 1) for _ in range(trace.n_ranks)]
    left, right = (np.rint((time - begin) * scale).astype(int).tolist() for time in (events.start, events.end))
    columns = (events.rank, events.kind, events.stage, events.micro_batch)
    for rank, kind, stage, micro_batch, a, b in zip(*(c.tolist() for c in columns), left, right, strict=True):
        name = f"{stage if chunked else ''}{KIND_LETTERS[kind]}{micro_batch}"
        lines[rank][a:b] = name.ljust(b - a, "-")[: b - a]
    return "\n".join(f"rank {rank}".ljust(margin) + "".join(line).rstrip() for rank, line in enumerate(lines)) + "\n"


def table(columns: Mapping[str, Sequence[str]]) -> str:
    """Right-aligned columns under their titles; of many ranks the first and the last."""
    rows = [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
    if len(rows) > _MOST_LINES + 1:
        half = _MOST_LINES // 2
        rows = [*rows[: half + 1], ["…"] * len(columns), *rows[-half:]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) + "\n" for row in rows)
