"""Every schedule at the numbers of the controls, side by side at equal work."""

from __future__ import annotations

from typing import Any

from explorer.figures.units import Unit, bytes_unit, time_unit
from explorer.planner import comparison
from explorer.schedules import REGISTRY
from explorer.widgets.markup import Markup, Part, bar, element, table
from explorer.widgets.settings import Settings

_HERE, _OTHERS = "#0a6ebd", "#868c96"
_OVER = "rgba(128, 128, 128, 0.4)"  # of what is more than the device has
_HEADS = ("schedule", "makespan", "", "bubble ratio", "peak in flight", "peak memory", "messages", "weight copies")
_MOST_NAMED = 3

_Row = dict[Any, Any]


def compared(settings: Settings) -> tuple[Markup, dict[str, int]]:
    """The table, and the schedules that exist for these numbers with their chunks: what fits first, the fastest first.

    Held against the device's memory where it has a limit.
    """
    found, limit = _found(settings), settings.limit
    there = [one for one in found if one["makespan"] == one["makespan"]]  # else it does not exist for these numbers
    there.sort(key=lambda one: (not one["legal"], float(one["makespan"])))
    not_there = [one for one in found if one["makespan"] != one["makespan"]]
    longest = max((one["makespan"] for one in there), default=1.0)
    unit = bytes_unit(max((float(one["peak_bytes"]) for one in there), default=0.0))
    rows = [_row(one, longest, unit, settings) for one in there]
    reasons = element("ul", *(element("li", element("b", one["schedule"]), f": {one['reason']}") for one in not_there))
    for_what = "these numbers" if limit is None else "these numbers and this device"
    why_not = element("details", element("summary", f"{len(not_there)} do not exist for {for_what}"), reasons)
    parts = [
        *([] if limit is None else [element("p", _best(there, limit, unit), kind="headline")]),
        table(_HEADS, rows, caption=_caption(settings, len(there))),
        *([why_not] if not_there else []),
    ]
    return element("div", *parts, kind="why"), {one["schedule"]: int(one["n_chunks"]) for one in there}


def _found(settings: Settings) -> list[_Row]:
    trains = REGISTRY[settings.schedule].trains  # a forward alone would win against whatever trains
    names = [name for name, recipe in REGISTRY.items() if recipe.trains == trains]
    found: list[_Row] = comparison(
        names,
        n_ranks=settings.n_ranks,
        n_micro_batches=settings.n_micro_batches,
        n_chunks=settings.n_chunks if (settings.n_chunks or 1) > 1 else None,
        costs=settings.share(),
        memory_limit=settings.limit,
    ).to_dict("records")
    return found


def _caption(settings: Settings, n_there: int) -> str:
    return (
        f"{n_there} schedules at {settings.n_ranks} ranks and {settings.n_micro_batches} micro-batches, "
        "predicted from the costs set here; each rank has the same share of the work in all"
    )


def _best(there: list[_Row], limit: float, unit: Unit) -> str:
    """The fastest that fits, and what is faster but does not."""
    device = bytes_unit(limit).show(limit)
    fitting = [one for one in there if one["legal"]]
    if not any(one["peak_bytes"] for one in there):
        return f"No bytes are known to hold against the {device} of a device: type Activations or Parameters."
    if not fitting:
        least = min(there, key=lambda one: float(one["peak_bytes"]), default=None)
        needed = f"; {least['schedule']} needs the least, {unit.show(least['peak_bytes'])}" if least else ""
        return f"None fits into the {device} of a device{needed}."
    best = fitting[0]
    faster = [one["schedule"] for one in there if not one["legal"] and one["makespan"] < best["makespan"]]
    others = (
        f"{', '.join(faster[:_MOST_NAMED])}{f' and {len(faster) - _MOST_NAMED} more' if faster[_MOST_NAMED:] else ''}"
    )
    but = f"; faster, but too much for it: {others}" if faster else ""
    return f"Of what fits into the {device} of a device {best['schedule']} is the fastest{but}."


def _row(one: _Row, longest: float, unit: Unit, settings: Settings) -> tuple[object, ...]:
    name, held, limit = one["schedule"], float(one["peak_bytes"]), settings.limit
    here = name == settings.schedule
    color = _HERE if here else _OTHERS if one["legal"] else _OVER
    memory: object = unit.show(held) if held > 0 else "–"
    if limit is not None and held > limit:
        memory = element("b", f"{memory}, over by {bytes_unit(held - limit).show(held - limit)}")
    return (
        element("b", name) if here else name,
        time_unit(longest, "wall").show(one["makespan"]),
        bar([Part(one["makespan"] / longest, color, title="" if one["legal"] else "more than the device has")]),
        f"{one['bubble_ratio']:.1%}",
        f"{one['peak_in_flight']}",
        memory,
        f"{one['messages']:,}",
        f"{one['weight_copies']:g}",
    )
