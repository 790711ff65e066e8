"""A Trace as plain nested lists and names, which JSON can say, and back.

    format          "trace"
    version         of this form
    clock           as in Trace; clock_offsets: [seconds, low, high] of each rank, or null
    marks           [step, rank, time, text] of each; may be missing
    messages        the rule by which sends and receives met, or null; may be missing
    codes           what the numbers in kind, stream, origin and category stand for
    program         its numbers and columns, by the names they have in Program
    costs           by the names they have in Costs, or null
    events, memory  column by column, by the names they have in Events and MemoryChanges; seconds and bytes

What comes from a file is a stranger's: every column is checked to be of one length and within its range.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import (
    MESSAGE_RULES,
    Category,
    Costs,
    Events,
    Kind,
    MemoryChanges,
    Origin,
    Placement,
    Program,
    Stream,
    Trace,
    Waits,
)
from explorer.core.clocks import ClockOffset
from explorer.errors import CostError, InputError
from explorer.io.columns import as_list, as_plain, from_plain, read_column, read_whole, unlike
from explorer.io.marks import read_marks

VERSION = 1
_CODES = {"kind": Kind, "stream": Stream, "origin": Origin, "category": Category}
_MOST = 2**31 - 1
_FREE = 1_000_000  # cells of a table that are never worth a refusal
_LONGEST = 200  # characters of a name
_SECONDS = 1e15  # so large that differences still mean something


def to_document(trace: Trace) -> dict[str, Any]:
    """`trace` as described above."""
    program, offsets = trace.program, trace.clock_offsets
    return {
        "format": "trace",
        "version": VERSION,
        "clock": trace.clock,
        "clock_offsets": None if offsets is None else [list(one) for one in offsets],
        "marks": [list(mark) for mark in trace.marks],
        "messages": trace.messages,
        "codes": {name: [code.name for code in codes] for name, codes in _CODES.items()},
        "program": {
            "name": program.name,
            "n_ranks": program.n_ranks,
            "n_micro_batches": program.n_micro_batches,
            "n_segments": program.n_segments,
            "routes": program.placement.routes.tolist(),
            "route_of": _list_or_none(program.placement.route_of),
            **{name: getattr(program, name).tolist() for name in _PROGRAM_COLUMNS},
            "slot_offsets": program.slot_offsets.tolist(),
            "rank_offsets": program.rank_offsets.tolist(),
            "waits": None if program.waits is None else [column.tolist() for column in program.waits],
            "capacities": _list_or_none(program.capacities),
            "weight_versions": _list_or_none(program.weight_versions),
        },
        "costs": None
        if trace.costs is None
        else {one.name: as_plain(getattr(trace.costs, one.name)) for one in _COSTS},
        "events": {name: as_list(column, name) for name, column in trace.events.columns().items()},
        "memory": {name: as_list(column, name) for name, column in trace.memory.columns().items()},
    }


def as_text(document: dict[str, Any]) -> str:
    """A document as JSON.

    A list of numbers reads the same in Python, which writes it several times as fast.
    """
    columns = [name for name, value in document.items() if name in ("events", "memory") and isinstance(value, dict)]
    small = json.dumps({name: value for name, value in document.items() if name not in columns}, allow_nan=False)
    tables = [f'"{name}":{{{",".join(_column_text(*one) for one in document[name].items())}}}' for name in columns]
    return ",\n".join([small[:-1], *tables]) + "}"


def _column_text(name: str, values: list[Any]) -> str:
    return f'"{name}":{str(values).replace(" ", "")}'


_PROGRAM_COLUMNS = ("kind", "stage", "micro_batch", "segment", "peer")
_COSTS = fields(Costs)


def _list_or_none(column: npt.NDArray[Any] | None) -> list[Any] | None:
    return None if column is None else column.tolist()


def from_document(document: object) -> Trace:
    """The trace that `document` holds.

    Raises:
        InputError: if it is no such document, of a later version, or something in it cannot be.
    """
    whole = _mapping(document, "a trace")
    if whole.get("format") != "trace":
        raise unlike("format", "'trace'", whole.get("format"))
    if read_whole(whole.get("version"), "version", low=1, high=_MOST) > VERSION:
        raise InputError(
            f"this explorer reads traces up to version {VERSION}; got {whole['version']}; try a newer explorer"
        )
    clock = whole.get("clock")
    if not isinstance(clock, str) or len(clock) > _LONGEST:
        raise unlike("clock", "a short text", clock)
    messages = whole.get("messages")
    if messages is not None and messages not in MESSAGE_RULES:
        raise unlike("messages", f"one of {', '.join(MESSAGE_RULES)}, or null", messages)
    codes = _codes(whole.get("codes"))
    program = _program(_mapping(whole.get("program"), "program"), codes)
    return Trace(
        _events(_mapping(whole.get("events"), "events"), program, codes),
        program,
        _memory(_mapping(whole.get("memory"), "memory"), program, codes),
        _costs(whole.get("costs")),
        clock,
        clock_offsets=_offsets(whole.get("clock_offsets"), program.n_ranks),
        marks=read_marks(whole.get("marks", []), program.n_ranks),
        messages=messages,
    )


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise unlike(name, "an object with names", value)
    return value


Codes = Mapping[str, npt.NDArray[np.int64]]


def _codes(given: object) -> Codes:
    """For each coded column, our number of each number in the file."""
    legend = _mapping(given, "codes")
    found = {}
    for name, codes in _CODES.items():
        words = legend.get(name)
        if not isinstance(words, list) or not all(
            isinstance(word, str) and word in codes.__members__ for word in words
        ):
            raise unlike(f"codes of {name}", f"a list of {', '.join(codes.__members__)}", words)
        found[name] = np.array([codes[word] for word in words], np.int64)
    return found


def _coded(values: object, name: str, codes: Codes, length: int | None = None) -> npt.NDArray[np.int8]:
    table = codes[name]
    numbers = read_column(values, name, "int64", length=length, low=0, high=len(table) - 1)
    return np.asarray(table[numbers], np.int8)


# ── the program ─────────────────────────────────────────────────────────────────────────────────────────────────


def _program(given: Mapping[str, Any], codes: Codes) -> Program:
    name = given.get("name")
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise unlike("the program's name", "a short text", name)
    rank_offsets = _offsets_column(given.get("rank_offsets"), "rank_offsets")
    slot_offsets = _offsets_column(given.get("slot_offsets"), "slot_offsets")
    n_ranks, n_actions = len(rank_offsets) - 1, int(slot_offsets[-1])
    if given.get("n_ranks") != n_ranks or rank_offsets[-1] != len(slot_offsets) - 1:
        raise InputError("a program's rank_offsets hold where each rank's slots begin, and the end; got others")
    counts = {one: read_whole(given.get(one), one, low=1, high=_MOST) for one in ("n_micro_batches", "n_segments")}
    placement = _placement(given, n_ranks, counts["n_micro_batches"])
    highs = {"stage": placement.n_stages - 1, "micro_batch": _MOST, "segment": counts["n_segments"] - 1}
    highs["peer"] = n_ranks - 1
    if placement.n_stages * counts["n_micro_batches"] * counts["n_segments"] > max(_FREE, n_actions):
        raise InputError(
            f"every stage runs every micro-batch; got {placement.n_stages:,} stages, "
            f"{counts['n_micro_batches']:,} micro-batches, and {n_actions:,} actions"
        )
    columns: dict[str, Any] = {
        one: read_column(given.get(one), one, "int32", length=n_actions, high=high) for one, high in highs.items()
    }
    return Program(
        name=name,
        placement=placement,
        kind=_coded(given.get("kind"), "kind", codes, n_actions),
        slot_offsets=slot_offsets,
        rank_offsets=rank_offsets,
        waits=_waits(given.get("waits"), n_actions),
        capacities=_optional(given.get("capacities"), "capacities", placement.n_stages - 1),
        weight_versions=_optional(given.get("weight_versions"), "weight_versions", n_ranks),
        n_micro_batches=counts["n_micro_batches"],
        n_segments=counts["n_segments"],
        **columns,
    )


def _placement(given: Mapping[str, Any], n_ranks: int, n_micro_batches: int) -> Placement:
    routes = given.get("routes")
    if not isinstance(routes, list) or not routes or not isinstance(routes[0], list) or not routes[0]:
        raise unlike("routes", "a list of lists, the rank of each stage along each route", routes)
    n_stages = len(routes[0])
    rows = [read_column(route, "routes", "int32", length=n_stages, low=0, high=n_ranks - 1) for route in routes]
    route_of = given.get("route_of")
    if route_of is not None:
        route_of = read_column(route_of, "route_of", "int32", length=n_micro_batches, low=0, high=len(routes) - 1)
    return Placement(n_ranks, np.stack(rows), route_of)


def _offsets_column(values: object, name: str) -> npt.NDArray[np.int64]:
    column = read_column(values, name, "int64", low=0)
    if len(column) < 2 or column[0] != 0 or (np.diff(column) < 0).any():
        raise InputError(f"{name} begin with 0 and never fall; got others")
    return column


def _optional(values: object, name: str, length: int) -> npt.NDArray[np.int64] | None:
    return None if values is None else read_column(values, name, "int64", length=length, low=0)


def _waits(values: object, n_actions: int) -> Waits | None:
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != 3:
        raise unlike("waits", "three columns, after, before and lag", values)
    after = read_column(values[0], "after", "int64", low=0, high=n_actions - 1)
    before = read_column(values[1], "before", "int64", length=len(after), low=0, high=n_actions - 1)
    return Waits(after, before, read_column(values[2], "lag", "float64", length=len(after), low=-_SECONDS))


# ── what happened, and what it was simulated with ───────────────────────────────────────────────────────────────


def _events(given: Mapping[str, Any], program: Program, codes: Codes) -> Events:
    n = len(given["step"]) if isinstance(given.get("step"), list) else 0
    slots = np.diff(program.rank_offsets)
    highs = {
        "rank": program.n_ranks - 1,
        "stage": program.n_stages - 1,
        "micro_batch": program.n_micro_batches - 1,
        "segment": program.n_segments - 1,
        "peer": program.n_ranks - 1,
    }
    columns = _columns(given, Events.DTYPES, highs, codes, n)
    events = Events(**columns)
    if (events.rank < 0).any() or (events.slot >= slots[events.rank]).any():
        raise InputError("an event is of a rank and, where it has one, a slot of the program; got another")
    if (events.end < events.start).any() or (events.wait < 0).any() or (events.bytes < 0).any():
        row = int(np.flatnonzero((events.end < events.start) | (events.wait < 0) | (events.bytes < 0))[0])
        raise InputError(f"an event ends after its start, and waits and bytes are 0 or more; got others in row {row:,}")
    return events


def _memory(given: Mapping[str, Any], program: Program, codes: Codes) -> MemoryChanges:
    n = len(given["step"]) if isinstance(given.get("step"), list) else 0
    highs = {
        "rank": program.n_ranks - 1,
        "stage": program.n_stages - 1,
        "micro_batch": program.n_micro_batches - 1,
    }
    changes = MemoryChanges(**_columns(given, MemoryChanges.DTYPES, highs, codes, n))
    if (changes.rank < 0).any():
        raise InputError("a change of memory is of a rank of the program; got another")
    return changes


def _columns(
    given: Mapping[str, Any], dtypes: Mapping[str, str], highs: Mapping[str, int], codes: Codes, n: int
) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, dtype in dtypes.items():
        if name in codes:
            columns[name] = _coded(given.get(name), name, codes, n)
        else:
            free = name in ("start", "end", "time", "delta")
            low = (-_SECONDS if dtype == "float64" else -(2**62)) if free else -1
            high = highs.get(name, _SECONDS if dtype == "float64" else np.inf)
            columns[name] = read_column(given.get(name), name, dtype, length=n, low=low, high=high)
    return columns


def _costs(given: object) -> Costs | None:
    if given is None:
        return None
    known = {one.name for one in _COSTS}
    named = {str(name): from_plain(value) for name, value in _mapping(given, "costs").items()}
    strange = next((name for name in named if name not in known), None)
    if strange is not None:
        raise InputError(f"costs are {', '.join(sorted(known))}; got {strange[:_LONGEST]!r}")
    try:
        return Costs(**named)
    except CostError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"costs are numbers and lists of numbers; got others ({str(error)[:_LONGEST]})") from error


def _offsets(given: object, n_ranks: int) -> tuple[ClockOffset, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != n_ranks:
        raise unlike("clock_offsets", "a list with three numbers a rank", given)
    rows = [read_column(row, "clock_offsets", "float64", length=3, low=-_SECONDS, high=_SECONDS) for row in given]
    return tuple(ClockOffset(*row.tolist()) for row in rows)
