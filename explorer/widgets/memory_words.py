"""What is said of the memory of a rank: its peak, against what its device has, and who holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from explorer.analysis.peak import peak_parts
from explorer.core import Category, Trace
from explorer.figures.memory_stack import CATEGORY_LETTERS, CATEGORY_TITLES, StackInfo
from explorer.figures.palette import CATEGORY_COLORS
from explorer.figures.units import Unit, bytes_unit, time_unit
from explorer.widgets.markup import Markup, Part, bar, chip, element, table

if TYPE_CHECKING:
    import pandas as pd

_MOST_RANKS, _MOST_HOLDERS = 16, 12
_MOST_NAMED = 2  # categories in a sentence


def memory_summary(trace: Trace, info: StackInfo, memory_limit: float | None) -> Markup:
    """The rank's peak in a sentence, and every rank's as a bar of what it is for.

    Args:
        trace: that knows memory.
        info: of the rank that is shown.
        memory_limit: bytes of each device; None: no limit.
    """
    parts = peak_parts(trace)
    return element(
        "div",
        element("p", _headline(parts[info.rank], info, memory_limit), kind="headline"),
        element("p", _under_way(trace, info), kind="note"),
        _by_rank(parts, info, memory_limit),
        kind="why",
    )


def holders_page(holders: pd.DataFrame, info: StackInfo, moment: float, *, at_peak: bool) -> Markup:
    """Who holds the memory of a rank at a moment, the largest first.

    Args:
        holders: as `peak_holders` gives them.
        info: of the rank.
        moment: seconds.
        at_peak: whether that is where it holds the most.
    """
    clock = _clock(info)
    total = float(holders["bytes"].sum()) or 1.0
    shown = holders.head(_MOST_HOLDERS)
    columns = (shown[name].tolist() for name in ("category", "stage", "micro_batch", "bytes", "since"))
    rows = [
        _holder(Category[str(category).upper()], stage, micro_batch, size, since, total, clock)
        for category, stage, micro_batch, size, since in zip(*columns, strict=True)
    ]
    left = holders["bytes"].iloc[len(shown) :]
    if len(left):
        size = float(left.sum())
        rows.append((f"{len(left)} more", "", "", bytes_unit(size).show(size), f"{size / total:.1%}", "", ""))
    place = f"at its peak, {clock.show(moment)}" if at_peak else f"at {clock.show(moment)}"
    heads = ("what", "stage", "micro-batch", "holds", "share", "", "since")
    caption = f"Who holds the memory of rank {info.rank} {place}"
    return element("div", table(heads, rows, caption=caption), kind="why")


def _headline(parts: npt.NDArray[np.int64], info: StackInfo, memory_limit: float | None) -> str:
    time, held = info.peak
    largest = np.argsort(-parts, kind="stable")[:_MOST_NAMED]
    named = [f"{CATEGORY_TITLES[Category(one)]} ({parts[one] / held:.0%})" for one in largest.tolist() if parts[one]]
    most = f", most of it {' and '.join(named)}" if named else ""
    said = f"Rank {info.rank} holds {info.unit.show(held)} at its peak, {_clock(info).show(time)}{most}."
    return said if memory_limit is None else f"{said} {_against(held, memory_limit)}"


def _against(held: float, memory_limit: float) -> str:
    free = memory_limit - held
    amount, device = bytes_unit(abs(free)).show(abs(free)), bytes_unit(memory_limit).show(memory_limit)
    if not free:
        return f"That is all that its device has, {device}."
    return f"That is {amount} {'less' if free > 0 else 'more'} than its device has, {device}."


def _under_way(trace: Trace, info: StackInfo) -> str:
    """Why it is so much: what has begun there and is not over."""
    begun = info.holders[(info.holders["category"] == "activations") & (info.holders["micro_batch"] >= 0)]
    n = len(begun[["stage", "micro_batch"]].drop_duplicates())
    if not n:
        return ""
    stages = sorted(set(begun["stage"].tolist()))
    named = f"stage {stages[0]}" if len(stages) == 1 else f"stages {', '.join(map(str, stages))}"
    until = "backward" if trace.program.has_backward else "forward"
    if n == 1:
        return f"1 micro-batch has begun on {named} by then, and keeps its activations until its {until} ends."
    many = f"{n} micro-batches" if len(stages) == 1 else f"{n} micro-batches × stages"
    return f"{many} have begun on {named} by then, and keep their activations until their {until} ends."


def _by_rank(parts: npt.NDArray[np.int64], info: StackInfo, memory_limit: float | None) -> Markup:
    peaks = parts.sum(axis=1)
    n = len(peaks)
    ranks = range(n) if n <= _MOST_RANKS else np.linspace(0, n - 1, _MOST_RANKS).round().astype(int).tolist()
    widest, unit = float(peaks.max(initial=1)) or 1.0, bytes_unit(float(peaks.max(initial=0)))
    rows = [
        (
            element("b", f"rank {rank}") if rank == info.rank else f"rank {rank}",
            unit.show(float(peaks[rank])),
            *([] if memory_limit is None else [_free(float(peaks[rank]), memory_limit)]),
            bar(_parts(parts[rank], widest, unit)),
        )
        for rank in ranks
    ]
    some = "" if n <= _MOST_RANKS else f" ({len(rows)} of {n})"
    heads = ("", "peak", *([] if memory_limit is None else ["its device"]), "")
    return table(heads, rows, caption=f"The most that each rank holds{some}")


def _free(held: float, memory_limit: float) -> object:
    free = memory_limit - held
    amount = bytes_unit(abs(free)).show(abs(free))
    return f"{amount} free" if free >= 0 else element("b", f"over by {amount}")


def _parts(held: npt.NDArray[np.int64], widest: float, unit: Unit) -> list[Part]:
    return [
        Part(
            size / widest,
            CATEGORY_COLORS[Category(one)],
            CATEGORY_LETTERS[Category(one)],
            f"{CATEGORY_TITLES[Category(one)]}: {unit.show(size)}",
        )
        for one, size in enumerate(held.tolist())
        if size > 0
    ]


def _holder(
    category: Category, stage: int, micro_batch: int, size: int, since: float, total: float, clock: Unit
) -> tuple[object, ...]:
    color = CATEGORY_COLORS[category]
    return (
        element("span", chip(CATEGORY_LETTERS[category], color), " ", CATEGORY_TITLES[category]),
        stage if stage >= 0 else "",
        micro_batch if micro_batch >= 0 else "",
        bytes_unit(size).show(size),
        f"{size / total:.1%}",
        bar([Part(size / total, color)]),
        clock.show(since),
    )


def _clock(info: StackInfo) -> Unit:
    """The unit of times: the app's costs are in seconds, the simulator's too."""
    return time_unit(float(info.time[-1]), "wall")
