"""Every schedule at the numbers of the controls, side by side at equal work."""

from __future__ import annotations

from typing import Any

from explorer.figures.units import bytes_unit, time_unit
from explorer.planner import comparison
from explorer.schedules import REGISTRY
from explorer.widgets.markup import Markup, Part, bar, element, table
from explorer.widgets.settings import Settings

_HERE, _OTHERS = "#0a6ebd", "#868c96"
_HEADS = ("schedule", "makespan", "", "bubble ratio", "peak in flight", "peak memory", "messages", "weight copies")


def compared(settings: Settings) -> tuple[Markup, dict[str, int]]:
    """The table, and the schedules that exist for these numbers with their chunks, the fastest first."""
    trains = REGISTRY[settings.schedule].trains  # a forward alone would win against whatever trains
    names = [name for name, recipe in REGISTRY.items() if recipe.trains == trains]
    found: list[dict[Any, Any]] = comparison(
        names,
        n_ranks=settings.n_ranks,
        n_micro_batches=settings.n_micro_batches,
        n_chunks=settings.n_chunks if (settings.n_chunks or 1) > 1 else None,
        costs=settings.share(),
    ).to_dict("records")
    legal = sorted((one for one in found if one["legal"]), key=lambda one: float(one["makespan"]))
    not_legal = [one for one in found if not one["legal"]]
    longest = max((one["makespan"] for one in legal), default=1.0)
    rows = [_row(one, longest, settings.schedule) for one in legal]
    said = (
        f"{len(legal)} schedules at {settings.n_ranks} ranks and {settings.n_micro_batches} micro-batches; "
        "each rank has the same share of the work in all"
    )
    reasons = element("ul", *(element("li", element("b", one["schedule"]), f": {one['reason']}") for one in not_legal))
    why_not = element("details", element("summary", f"{len(not_legal)} do not exist for these numbers"), reasons)
    parts = [table(_HEADS, rows, caption=said), *([why_not] if not_legal else [])]
    return element("div", *parts, kind="why"), {one["schedule"]: int(one["n_chunks"]) for one in legal}


def _row(one: dict[Any, Any], longest: float, here: str) -> tuple[object, ...]:
    name, bytes_held = one["schedule"], float(one["peak_bytes"])
    return (
        element("b", name) if name == here else name,
        time_unit(longest, "wall").show(one["makespan"]),
        bar([Part(one["makespan"] / longest, _HERE if name == here else _OTHERS)]),
        f"{one['bubble_ratio']:.1%}",
        f"{one['peak_in_flight']}",
        bytes_unit(bytes_held).show(bytes_held) if bytes_held > 0 else "–",
        f"{one['messages']:,}",
        f"{one['weight_copies']:g}",
    )
