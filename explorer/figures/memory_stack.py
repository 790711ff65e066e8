"""What one rank's memory is held for, stacked over time, with the device's limit and who is there at the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis import Levels, memory_over_time, peak_holders
from explorer.analysis.peak import check_rank, fullest_rank
from explorer.core import Category, MemoryChanges, Trace
from explorer.errors import InputError
from explorer.figures.memory import check_device, device_trace
from explorer.figures.palette import CATEGORY_COLORS, EITHER
from explorer.figures.timeline import MODEBAR, time_axis
from explorer.figures.units import Unit, bytes_unit, time_unit
from explorer.figures.words import check_predicted, check_trace, title_of

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.int64]

_MOST_TOLD = 8  # holders that a hover text lists
CATEGORY_TITLES = {
    Category.PARAMETERS: "parameters",
    Category.GRADIENTS: "gradients",
    Category.OPTIMIZER: "optimizer state",
    Category.ACTIVATIONS: "activations",
    Category.WEIGHT_GRADIENTS: "kept between I and W",
    Category.RECEIVE_BUFFERS: "receive buffers",
}
CATEGORY_LETTERS = {
    Category.PARAMETERS: "P",
    Category.GRADIENTS: "G",
    Category.OPTIMIZER: "O",
    Category.ACTIVATIONS: "A",
    Category.WEIGHT_GRADIENTS: "K",
    Category.RECEIVE_BUFFERS: "R",
}
# of text upon a layer: whichever of the two contrasts more
CATEGORY_INKS = {one: "#ffffff" if one in (Category.ACTIVATIONS, Category.OPTIMIZER) else "#000000" for one in Category}


class StackInfo(NamedTuple):
    """All that a stacked memory chart shows.

    Attributes:
        title, subtitle: escaped.
        rank: the pipeline rank.
        time_unit, unit: of times and of bytes.
        time: (n,) float64 seconds at which something changes, and the trace's end.
        layers: category → (n,) int64 bytes from each time on, in the order they are stacked in.
        predicted: times and bytes in all of the prediction, or None.
        device_bytes: that the device has, or None.
        peak: the first time at which the most is held, in seconds, and those bytes.
        holders: who holds them, as `peak_holders` gives it.
    """

    title: str
    subtitle: str
    rank: int
    time_unit: Unit
    unit: Unit
    time: Floats
    layers: dict[Category, Bytes]
    predicted: tuple[Floats, Bytes] | None
    device_bytes: float | None
    peak: tuple[float, int]
    holders: pd.DataFrame


def memory_stack(
    trace: Trace, rank: int | None = None, *, predicted: Trace | None = None, device_bytes: float | None = None
) -> go.Figure:
    """What one rank holds memory for over time, stacked, and who holds it at the peak.

    Args:
        trace: one that knows memory: simulated with bytes in its costs, or really run.
        rank: the pipeline rank; None for the one with the highest peak.
        predicted: another trace of as many ranks, whose sum is drawn as a dashed line.
        device_bytes: what the device has, drawn as a line.

    Raises:
        InputError: if `trace` or `predicted` is not a Trace, they differ in their ranks, the trace knows no memory, or
            there is no such rank, or `device_bytes` is no number above 0.
    """
    import plotly.graph_objects as go

    info = memory_stack_info(trace, rank, predicted=predicted, device_bytes=device_bytes)
    figure = go.Figure([*(_layer(info, category) for category in info.layers), *_lines(info), _peak(info)])
    figure.update_layout(
        title={"text": info.title, "subtitle": {"text": info.subtitle}, "x": 0.01, "font": {"size": 16}},
        template="none",
        font={"color": EITHER.text, "size": 12},
        paper_bgcolor=EITHER.paper,
        plot_bgcolor=EITHER.paper,
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        margin={"l": 64, "r": 24, "t": 100, "b": 48},
        height=420,
        modebar=MODEBAR,
        hovermode="x",
        xaxis=time_axis(info.time_unit),
        yaxis={
            "title": {"text": f"memory held by rank {info.rank} ({info.unit.name})"},
            "rangemode": "tozero",
            "gridcolor": EITHER.grid,
            "zerolinecolor": EITHER.grid,
            "fixedrange": True,
        },
    )
    return figure


def memory_stack_info(
    trace: Trace, rank: int | None = None, *, predicted: Trace | None = None, device_bytes: float | None = None
) -> StackInfo:
    """What `memory_stack` shows, as numbers and texts."""
    trace = check_trace(trace, function="memory_stack")
    predicted = check_predicted(predicted, trace, function="memory_stack")
    device_bytes = check_device(device_bytes)
    if not len(trace.memory):
        raise InputError(
            "memory_stack shows bytes; this trace knows none; give its costs activation_bytes and parameter_bytes, or "
            "draw explorer.memory(trace), which counts micro-batches",
            argument="trace",
        )
    rank = fullest_rank(trace) if rank is None else check_rank(trace, rank)
    time, layers = _layers(trace, rank)
    held = held_in_all(time, layers)
    at = int(np.argmax(held))
    dashed = None if predicted is None or not len(predicted.memory) else _total(predicted, rank)
    most = max(int(held[at]), device_bytes or 0, 0 if dashed is None else int(dashed[1].max(initial=0)))
    unit, units = time_unit(float(time[-1]), trace.clock), bytes_unit(most)
    holders = peak_holders(trace, rank)
    told = _peak_words(float(time[at]), int(held[at]), holders, unit, units)
    limit = _limit_words(int(held[at]), device_bytes, units)
    return StackInfo(
        title_of(trace),
        told + limit,
        rank,
        unit,
        units,
        time,
        layers,
        dashed,
        device_bytes,
        (float(time[at]), int(held[at])),
        holders,
    )


def _layers(trace: Trace, rank: int) -> tuple[Floats, dict[Category, Bytes]]:
    """Each category's bytes on times common to all: stacked areas must share them."""
    changes = trace.memory.take(trace.memory.rank == rank)
    parts = [_of_step(changes.take(changes.step == step)) for step in np.unique(changes.step)]
    times = np.concatenate([np.zeros(0), *(time for time, _ in parts)])
    levels = np.concatenate([np.zeros((len(Category), 0), np.int64), *(level for _, level in parts)], axis=1)
    last = float(trace.events.end.max(initial=0.0))
    if not len(times) or last > times[-1]:
        times = np.append(times, last)
        levels = np.append(levels, levels[:, -1:] if len(parts) else np.zeros((len(Category), 1), np.int64), axis=1)
    return times, {category: levels[category] for category in Category if levels[category].any()}


def held_in_all(time: Floats, layers: dict[Category, Bytes]) -> Bytes:
    """(n,) the bytes of all layers together."""
    return np.asarray(np.sum([np.zeros(len(time), np.int64), *layers.values()], axis=0, dtype=np.int64))


def _of_step(changes: MemoryChanges) -> tuple[Floats, Bytes]:
    """(n,) the instants at which a rank's sum changes in a step, and (n_categories, n) what it is for from then on."""
    time, _ = _levels(changes)
    by_category = [_levels(changes.take(changes.category == category)) for category in Category]
    return time, np.stack([_at(time, *levels) for levels in by_category])


def _levels(changes: MemoryChanges) -> tuple[Floats, Bytes]:
    rank = np.zeros(len(changes), np.int64)
    return Levels.of_changes(rank, changes.step, changes.time, changes.delta, n_ranks=1).of(0)


def _at(times: Floats, time: Floats, level: Bytes) -> Bytes:
    """The level at each of `times`; 0 before the first row."""
    row = np.searchsorted(time, times, side="right") - 1
    return np.where(row >= 0, np.append(level, 0)[row], 0)


def _total(trace: Trace, rank: int) -> tuple[Floats, Bytes]:
    time, level = memory_over_time(trace).of(rank)
    last = max(float(trace.events.end.max(initial=0.0)), float(time.max(initial=0.0)))
    return np.append(time, last), np.append(level, level[-1:] if len(level) else 0)


def _peak_words(time: float, held: int, holders: pd.DataFrame, unit: Unit, units: Unit) -> str:
    of_batches = holders[holders["micro_batch"] >= 0]
    n = len(of_batches[["stage", "micro_batch"]].drop_duplicates())
    batches = f", {units.show(float(of_batches['bytes'].sum()))} of them for {_count(n)}" if n else ""
    return f"peak {units.show(held)} at {unit.show(time)}{batches}"


def _count(n: int) -> str:
    return f"{n} micro-batch × stage" if n == 1 else f"{n} micro-batches × stages"


def _limit_words(held: int, device_bytes: float | None, units: Unit) -> str:
    if device_bytes is None:
        return ""
    free = device_bytes - held
    return f" · {units.show(abs(free))} {'below' if free >= 0 else 'above'} what the device has"


def _layer(info: StackInfo, category: Category) -> go.Scatter:
    import plotly.graph_objects as go

    color, title = CATEGORY_COLORS[category], CATEGORY_TITLES[category]
    return go.Scatter(
        x=info.time * info.time_unit.factor,
        y=info.layers[category] * info.unit.factor,
        stackgroup="held",
        mode="lines",
        line={"shape": "hv", "color": color, "width": 1},
        fillcolor=f"rgba({_rgb(color)},0.75)",
        name=title,
        hovertemplate=f"{title}: %{{y:.4~g}} {info.unit.name}<extra></extra>",
    )


def _rgb(color: str) -> str:
    return ",".join(str(int(color[place : place + 2], 16)) for place in (1, 3, 5))


def _lines(info: StackInfo) -> list[go.Scatter]:
    """The prediction's sum, and what the device has."""
    import plotly.graph_objects as go

    found = []
    if info.predicted is not None:
        time, level = info.predicted
        line = go.Scatter(
            x=time * info.time_unit.factor,
            y=level * info.unit.factor,
            mode="lines",
            line={"shape": "hv", "dash": "dash", "color": EITHER.text, "width": 1.6},
            name="predicted, in all",
            hovertemplate=f"predicted, in all: %{{y:.4~g}} {info.unit.name}<extra></extra>",
        )
        found.append(line)
    if info.device_bytes is not None:
        ends = np.array([0.0, info.time[-1]]) * info.time_unit.factor
        found.append(device_trace(info.device_bytes, ends, info.unit))
    return found


def _peak(info: StackInfo) -> go.Scatter:
    """A mark at the peak; its hover text lists who is there."""
    import plotly.graph_objects as go

    time, held = info.peak
    return go.Scatter(
        x=[time * info.time_unit.factor],
        y=[held * info.unit.factor],
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": EITHER.paper, "line": {"width": 2, "color": EITHER.text}},
        name="peak",
        text=["<br>".join(_holder_words(info))],
        hovertemplate="<b>at the peak</b><br>%{text}<extra></extra>",
    )


def _holder_words(info: StackInfo) -> list[str]:
    rows = info.holders.head(_MOST_TOLD)
    words = []
    for category, stage, micro_batch, size in zip(
        rows["category"], rows["stage"], rows["micro_batch"], rows["bytes"], strict=True
    ):
        of = f", micro-batch {micro_batch}" if micro_batch >= 0 else ""
        title = CATEGORY_TITLES[Category[str(category).upper()]]
        words.append(f"{info.unit.show(size)} {title}, stage {stage}{of}")
    left = len(info.holders) - len(rows)
    return [*words, f"… {left} more"] if left else words
