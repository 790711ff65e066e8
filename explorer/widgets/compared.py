"""Every schedule at the numbers of the controls, side by side at equal work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explorer.core import RankShare
from explorer.figures.units import Unit, bytes_unit, time_unit
from explorer.planner import comparison
from explorer.schedules import REGISTRY
from explorer.widgets.markup import Markup, Part, bar, element, table
from explorer.widgets.settings import Settings

_HERE, _OTHERS = "#0a6ebd", "#868c96"
_OVER = "rgba(128, 128, 128, 0.4)"  # of what is more than the device has
_HEADS = ("schedule", "step", "", "bubble", "in flight", "memory", "messages", "copies")
_STEP, _MEMORY = _HEADS.index("step"), _HEADS.index("memory")
_MOST_NAMED = 3
_NOTES = (
    "Step: from its first start to its last end.",
    "Bubble: idle time as a share of ranks × step.",
    "In flight: the most micro-batches that a rank holds for their backwards at once, counted in each of its stages.",
    "Memory: the most that a rank holds at once.",
    "Messages: between ranks, in a step.",
    "Copies: of its share of the weights on a rank.",
)
_NO_BYTES = "What each holds in bytes is not known: press Run, or type Activations and Parameters."

_Row = dict[Any, Any]


def compared(
    settings: Settings, measured: RankShare | None = None, *, with_faults: bool = False
) -> tuple[Markup, dict[str, int]]:
    """The table, and the schedules that exist for these numbers with their chunks: what fits first, the fastest first.

    Held against the device's memory where it has a limit.

    Args:
        settings: of the controls.
        measured: of a rank, by a run; None: what the controls say.
        with_faults: whether that run had any, which are then a part of what was measured.
    """
    found, limit = _found(settings, measured), settings.limit
    there = [one for one in found if one["makespan"] == one["makespan"]]  # else it does not exist for these numbers
    there.sort(key=lambda one: (not one["legal"], float(one["makespan"])))
    not_there = [one for one in found if one["makespan"] != one["makespan"]]
    by_run = f"measured by the run{', its faults included' if with_faults else ''}"
    caption = _caption(settings, len(there), by_run if measured else "set here")
    parts = [
        *([] if limit is None else [element("p", _best(there, limit), kind="headline")]),
        _table(there, settings, caption),
        *([_why_not(not_there, limit)] if not_there else []),
    ]
    return element("div", *parts, kind="why"), {one["schedule"]: int(one["n_chunks"]) for one in there}


def title_of(name: str) -> str:
    """A schedule as a person writes it."""
    return REGISTRY[name].title if name in REGISTRY else name


def _found(settings: Settings, measured: RankShare | None) -> list[_Row]:
    trains = REGISTRY[settings.schedule].trains  # a forward alone would win against whatever trains
    names = [name for name, recipe in REGISTRY.items() if recipe.trains == trains]
    found: list[_Row] = comparison(
        names,
        n_ranks=settings.n_ranks,
        n_micro_batches=settings.n_micro_batches,
        n_chunks=settings.n_chunks if (settings.n_chunks or 1) > 1 else None,
        costs=measured or settings.share(),
        memory_limit=settings.limit,
    ).to_dict("records")
    return found


def _caption(settings: Settings, n_there: int, costs: str) -> str:
    return (
        f"{n_there} schedules at {settings.n_ranks} ranks and {settings.n_micro_batches} micro-batches, "
        f"predicted from the costs {costs}; each rank has the same share of the work in all"
    )


def _best(there: list[_Row], limit: float) -> str:
    """The fastest that fits, and what is faster but does not."""
    device = bytes_unit(limit).show(limit)
    fitting = [one for one in there if one["legal"]]
    if not any(one["peak_bytes"] for one in there):
        return f"No bytes are known to hold against the {device} of a device: type Activations or Parameters."
    if not fitting:
        least = min(there, key=lambda one: float(one["peak_bytes"]), default=None)
        needed = f"; {title_of(least['schedule'])} needs the least, {_bytes(there, least)}" if least else ""
        return f"None fits into the {device} of a device{needed}."
    best = fitting[0]
    faster = [title_of(one["schedule"]) for one in there if not one["legal"] and one["makespan"] < best["makespan"]]
    others = (
        f"{', '.join(faster[:_MOST_NAMED])}{f' and {len(faster) - _MOST_NAMED} more' if faster[_MOST_NAMED:] else ''}"
    )
    but = f"; faster, but too much for it: {others}" if faster else ""
    return f"Of what fits into the {device} of a device {title_of(best['schedule'])} is the fastest{but}."


def _bytes(there: list[_Row], one: _Row) -> str:
    """What one holds, in the unit that fits the largest."""
    return _units(there)[1].show(float(one["peak_bytes"]))


def _units(there: list[_Row]) -> tuple[Unit, Unit]:
    """Of the longest step, and of the most that any holds."""
    longest, most = (max((float(one[name]) for one in there), default=0.0) for name in ("makespan", "peak_bytes"))
    return time_unit(longest, "wall"), bytes_unit(most)


def _table(there: list[_Row], settings: Settings, caption: str) -> Markup:
    """The rows, without their bytes where none are known, and what the heads mean."""
    known = any(one["peak_bytes"] > 0 for one in there)
    columns = [place for place in range(len(_HEADS)) if known or place != _MEMORY]
    cells = (list(_cells(one, there, settings)) for one in there)
    rows = [[row[place] for place in columns] for row in cells]
    notes = element("p", *(f"{note} " for note in _NOTES if known or not note.startswith("Memory")), kind="note")
    units = dict(zip((_STEP, _MEMORY), _units(there), strict=True))
    heads = [f"{_HEADS[one]}, {units[one].name}" if one in units else _HEADS[one] for one in columns]
    parts = [table(heads, rows, caption=caption), notes]
    return element("div", *parts, *([] if known else [element("p", _NO_BYTES, kind="note")]))


def _cells(one: _Row, there: list[_Row], settings: Settings) -> Iterator[object]:
    name, held, limit = one["schedule"], float(one["peak_bytes"]), settings.limit
    here = name == settings.schedule
    longest, (seconds, most) = max(float(other["makespan"]) for other in there), _units(there)
    color = _HERE if here else _OTHERS if one["legal"] else _OVER
    yield element("b", title_of(name)) if here else title_of(name)
    yield seconds._replace(name="").show(one["makespan"])
    yield bar([Part(one["makespan"] / longest, color, title="" if one["legal"] else "more than the device has")])
    yield f"{one['bubble_ratio']:.1%}"
    yield f"{one['peak_in_flight']}"
    memory = most._replace(name="").show(held) if held > 0 else "–"
    over = limit is not None and held > limit
    yield element("b", f"{memory}, over by {bytes_unit(held - limit).show(held - limit)}") if over and limit else memory
    yield f"{one['messages']:,}"
    yield f"{one['weight_copies']:g}"


def _why_not(not_there: list[_Row], limit: float | None) -> Markup:
    reasons = (element("li", element("b", title_of(one["schedule"])), f": {one['reason']}") for one in not_there)
    for_what = "these numbers" if limit is None else "these numbers and this device"
    return element(
        "details", element("summary", f"{len(not_there)} do not exist for {for_what}"), element("ul", *reasons)
    )
