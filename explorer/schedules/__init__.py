"""Every schedule by name: one file each, and this written-out registry."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from explorer.core import Program
from explorer.errors import ScheduleError, shown
from explorer.schedules.chimera import chimera
from explorer.schedules.depth_first import depth_first
from explorer.schedules.dualpipe import dualpipe
from explorer.schedules.dualpipev import dualpipev
from explorer.schedules.eager_1f1b import eager_1f1b
from explorer.schedules.forward_only import forward_only
from explorer.schedules.gis import gis
from explorer.schedules.gpipe import gpipe
from explorer.schedules.hanayo import hanayo
from explorer.schedules.interleaved_1f1b import interleaved_1f1b
from explorer.schedules.interleaved_zb import interleaved_zb
from explorer.schedules.looped_bfs import looped_bfs
from explorer.schedules.naive import naive
from explorer.schedules.one_f_one_b import one_f_one_b
from explorer.schedules.own import Shelf
from explorer.schedules.pipedream import pipedream, weight_versions
from explorer.schedules.pipedream_2bw import pipedream_2bw
from explorer.schedules.recipe import Recipe, check_counts, check_size
from explorer.schedules.seq1f1b import seq1f1b
from explorer.schedules.v_1f1b import v_1f1b
from explorer.schedules.v_half import v_half
from explorer.schedules.v_min import v_min
from explorer.schedules.zb_1p import zb_1p
from explorer.schedules.zb_2p import zb_2p
from explorer.schedules.zb_h1 import zb_h1
from explorer.schedules.zb_h2 import zb_h2
from explorer.schedules.zb_v import zb_v

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["REGISTRY", "Recipe", "register", "schedule", "schedules", "unregister"]

_SMALL = 10_000  # pairs of stage and micro-batch, made in no time
_ANY = "any numbers; one stage a rank"

_BUILT_IN: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe("naive", "Naive", naive, _ANY, holds="1"),
            Recipe("gpipe", "GPipe", gpipe, _ANY, holds="M"),
            Recipe("1f1b", "1F1B", one_f_one_b, _ANY, options=("warm_up", "dialect"), holds="P − r"),
            Recipe("eager_1f1b", "Eager 1F1B", eager_1f1b, _ANY, options=("warm_up",), holds="2(P − 1 − r) + 1"),
            Recipe(
                "interleaved_1f1b",
                "Interleaved 1F1B",
                interleaved_1f1b,
                "n_micro_batches a multiple of n_ranks, or as group_size or torch allow; two or more stages a rank",
                n_chunks=2,
                any_chunks=True,
                options=("group_size", "dialect"),
                holds="2(P − 1 − r) + (v − 1)N + 1 stages",
            ),
            Recipe(
                "looped_bfs",
                "Looped breadth-first",
                looped_bfs,
                "any numbers",
                n_chunks=2,
                any_chunks=True,
                holds="vM stages",
            ),
            Recipe(
                "depth_first",
                "Depth-first",
                depth_first,
                "n_micro_batches a multiple of n_ranks; two or more stages a rank",
                n_chunks=2,
                any_chunks=True,
                holds="2(P − 1 − r) + (v − 1)P + 1 stages",
            ),
            Recipe(
                "gis",
                "GIS",
                gis,
                "any numbers; group_size from half of n_ranks to n_ranks",
                n_chunks=2,
                any_chunks=True,
                options=("group_size",),
                holds="(v − 1)g + P − r stages",
            ),
            Recipe("seq1f1b", "Seq1F1B", seq1f1b, _ANY, options=("n_segments",), holds="P − 1 − r + k segments"),
            Recipe(
                "chimera",
                "Chimera",
                chimera,
                "n_ranks even; one stage a rank and direction",
                options=("n_replicas",),
                weight_copies=2,
                holds="P",
            ),
            Recipe(
                "hanayo",
                "Hanayo",
                hanayo,
                "an even number of stages a rank, two a wave",
                n_chunks=2,
                any_chunks=True,
                holds="(v − 1)P + r + 1 stages",
            ),
            Recipe("pipedream", "PipeDream", pipedream, _ANY, weight_copies=weight_versions, holds="P − r"),
            Recipe(
                "pipedream_2bw",
                "PipeDream-2BW",
                pipedream_2bw,
                "n_micro_batches at least n_ranks; one stage a rank",
                weight_copies=2,
                holds="P − r",
            ),
            Recipe("zb_h1", "ZB-H1", zb_h1, _ANY, holds="P"),
            Recipe("zb_h2", "ZB-H2", zb_h2, _ANY, holds="2P − 1"),
            Recipe("zb_1p", "ZB-1P", zb_1p, _ANY, options=("costs", "memory_limit", "weight_share"), holds="P"),
            Recipe("zb_2p", "ZB-2P", zb_2p, _ANY, options=("costs", "memory_limit", "weight_share"), holds="2P"),
            Recipe(
                "zb_v",
                "ZB-V",
                zb_v,
                "any numbers; two stages a rank",
                n_chunks=2,
                options=("costs", "memory_limit", "dialect"),
                holds="2P stages",
            ),
            Recipe(
                "v_half",
                "V-Half",
                v_half,
                "any numbers; two stages a rank",
                n_chunks=2,
                holds="2((P + 2) // 2) stages",
            ),
            Recipe(
                "v_min",
                "V-Min",
                v_min,
                "any numbers; two stages a rank",
                n_chunks=2,
                holds="2((P + 4) // 3) stages",
            ),
            Recipe(
                "v_1f1b",
                "1F1B-V",
                v_1f1b,
                "any numbers; two stages a rank",
                n_chunks=2,
                holds="about 4P/3 stages",
            ),
            Recipe(
                "dualpipe",
                "DualPipe",
                dualpipe,
                "n_ranks even; n_micro_batches even, at least twice n_ranks",
                weight_copies=2,
                holds="P + 1",
            ),
            Recipe(
                "dualpipev",
                "DualPipeV",
                dualpipev,
                "n_micro_batches at least twice n_ranks",
                n_chunks=2,
                holds="2P + 1 stages",
            ),
            Recipe(
                "interleaved_zb",
                "Interleaved zero bubble",
                interleaved_zb,
                "n_micro_batches a multiple of n_micro_batches // n_ranks",
                n_chunks=2,
                any_chunks=True,
                holds="(v − 1)N + P stages, N = M ÷ max(1, M // P)",
            ),
            Recipe(
                "forward_only",
                "Forward only",
                forward_only,
                "any numbers",
                any_chunks=True,
                options=("dialect", "buffers"),
                trains=False,
            ),
        )
    }
)

_SHELF = Shelf(_BUILT_IN)
REGISTRY = _SHELF.recipes  # read-only; users' own schedules come last
register, unregister = _SHELF.register, _SHELF.unregister


def schedule(name: str, *, n_ranks: int, n_micro_batches: int, n_chunks: int | None = None, **options: Any) -> Program:
    """The program of the schedule called `name`.

    Args:
        name: as in `schedules()`.
        n_ranks: pipeline ranks.
        n_micro_batches: micro-batches in a step.
        n_chunks: stages a rank; None for the fewest the schedule has.
        options: further arguments of that schedule.

    Raises:
        ScheduleError: if there is no such schedule, or not for these numbers; it names the nearest that do.

    Example:
        >>> import explorer as ex
        >>> print(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
        rank 0: 0F0 0F1 0B0 0B1
        rank 1: 1F0 1B0 1F1 1B1
    """
    recipe = REGISTRY.get(name) if isinstance(name, str) else None
    if recipe is None:
        raise ScheduleError(_unknown(name), argument="schedule")
    unknown = sorted(set(options) - set(recipe.options))
    if unknown:
        has = ", ".join(("n_ranks", "n_micro_batches", "n_chunks", *recipe.options))
        raise ScheduleError(f"{name} takes {has}; got {unknown[0][:60]}; leave it out", argument=unknown[0])
    counts = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches}
    counts["n_chunks"] = recipe.n_chunks if n_chunks is None else n_chunks
    try:
        check_counts(**counts)
    except ScheduleError as error:
        raise _nearest(recipe, counts, error) from None
    counts = {argument: int(count) for argument, count in counts.items()}  # numpy's small ones overflow
    check_size(**counts)
    return recipe.build(**counts, **options)


def _nearest(recipe: Recipe, counts: dict[str, int], error: ScheduleError) -> ScheduleError:
    """`error` about a count that is none, with what the schedule itself would take for it where that is not 1."""
    instead = {**counts, error.argument: 1}
    try:
        check_counts(**instead)
        if math.prod(instead.values()) <= _SMALL:
            recipe.build(**instead)
    except ScheduleError as other:
        if other.argument == error.argument and other.legal:
            advice = " or ".join(map(str, other.legal))
            message = str(error).rpartition("; try ")[0]
            return ScheduleError(f"{message}; try {advice}", argument=error.argument, legal=other.legal)
    return error


def schedules() -> pd.DataFrame:
    """Every schedule by name: title, what it is, which numbers it exists for, stages a rank, and what it keeps.

    `weight_copies` is how many times its share of the weights a rank keeps, on four ranks where it depends on them;
    `holds` the most that rank r holds for backward, in micro-batches unless it says otherwise.
    """
    import pandas as pd

    rows = [
        (r.name, r.title, r.summary, r.needs, r.n_chunks, ", ".join(r.options), _copies(r), r.holds)
        for r in REGISTRY.values()
    ]
    columns = ["name", "title", "summary", "needs", "n_chunks", "options", "weight_copies", "holds"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def _copies(recipe: Recipe) -> str:
    return (
        ", ".join(map(str, recipe.copies_per_rank(4))) if callable(recipe.weight_copies) else str(recipe.weight_copies)
    )


def _unknown(name: object) -> str:
    near = difflib.get_close_matches(str(name)[:60].lower(), REGISTRY, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else "choose one of these"
    return f"a schedule is one of {', '.join(REGISTRY)}; got {shown(name)}; {hint}"
