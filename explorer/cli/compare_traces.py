"""Traces in files, side by side: their measures, and of two why they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.cli.output import size_of, table, to_json
from explorer.core import Trace
from explorer.errors import InputError
from explorer.figures.units import Unit, time_unit

_PARTS = ("durations", "transfers", "order", "host")


def compare_files(files: Sequence[str], *, as_json: bool, html: str | None) -> int:
    """Print the measures of the traces in `files` and, of two, what their difference is made of.

    Raises:
        InputError: if there are fewer than two, or one holds no trace.
    """
    if len(files) < 2:
        raise InputError(f"traces are compared with one another; got one file, {files[0]}; name another")
    names = _names(files)
    traces = [_trace(file) for file in files]
    parts = _parts(traces)
    values = to_json({"traces": _rows(names, traces), "difference": parts})
    if html is not None:
        from explorer.figures import compare, write_html

        write_html(compare(*traces, names=names), html, title="Traces compared – Pipeline Explorer")
    print(values if as_json else _report(names, traces, parts))
    return 0


def _names(files: Sequence[str]) -> list[str]:
    """The files' names, or the whole paths where these do not tell them apart."""
    names = [Path(file).name for file in files]
    return names if len(set(names)) == len(names) else list(files)


def _trace(file: str) -> Trace:
    from explorer.io import load

    loaded = load(file)
    if not isinstance(loaded, Trace):
        raise InputError(f"compare takes traces; {file} holds a program; simulate it and save that")
    return loaded


def _rows(names: Sequence[str], traces: Sequence[Trace]) -> list[dict[str, Any]]:
    return [{"file": name, **size_of(trace), **trace.summary()} for name, trace in zip(names, traces, strict=True)]


def _parts(traces: Sequence[Trace]) -> dict[str, Any]:
    """What the difference of two is made of, in seconds; of others, or where they differ in more, why not."""
    from explorer.planner import explain_difference

    if len(traces) != 2:
        return {"reason": f"a difference is explained between two traces; got {len(traces)}"}
    try:
        found = explain_difference(*traces)
    except InputError as error:
        return {"reason": str(error)}
    parts = {name: getattr(found, name) for name in ("predicted", "measured", "total", *_PARTS)}
    return {**parts, "left_out": [kind.name for kind in found.left_out]} if found.left_out else parts


def _report(names: Sequence[str], traces: Sequence[Trace], parts: dict[str, Any]) -> str:
    from explorer.figures.compare import makespans_in_words

    makespans = [trace.makespan for trace in traces]
    clock = next((trace.clock for trace in traces if trace.clock != "simulated"), "simulated")
    unit = time_unit(max(makespans), clock)
    columns = {
        "trace": list(names),
        "schedule": [trace.program.name for trace in traces],
        "makespan": [unit.show(makespan) for makespan in makespans],
        "idle": [f"{trace.bubble_ratio:.1%}" for trace in traces],
        "of busy": [f"{trace.bubble_overhead:.1%}" for trace in traces],
        "in flight": [str(int(trace.peak_in_flight.max())) for trace in traces],
    }
    return f"{makespans_in_words(names, makespans, unit)}\n\n{table(columns)}\n{_difference(parts, unit)}"


def _difference(parts: dict[str, Any], unit: Unit) -> str:
    if "reason" in parts:
        return f"{parts['reason']}\n"
    shown = {name: f"{parts[name] * unit.factor:+.4g} {unit.name}".rstrip() for name in _PARTS}
    makespans = f"{unit.show(parts['measured'])} instead of {unit.show(parts['predicted'])}"
    return (
        f"in their steps of median makespan, {makespans}: {shown['durations']} for actions that took other times, "
        f"{shown['transfers']} for messages that did, {shown['order']} for the order, {shown['host']} for idling "
        "though all was there\n"
        f"{_left_out(parts.get('left_out', ()))}"
    )


def _left_out(kinds: Sequence[str]) -> str:
    if not kinds:
        return ""
    return f"left out: the two have not the same {' and '.join(kinds)} actions\n"
