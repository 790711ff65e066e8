"""The chart of what one rank holds memory for: what the browser is told, and what it tells."""

from __future__ import annotations

import pathlib
from typing import Any

import anywidget
import numpy as np
import numpy.typing as npt
import traitlets

from explorer.figures.memory_stack import CATEGORY_INKS, CATEGORY_LETTERS, CATEGORY_TITLES, StackInfo, held_in_all
from explorer.figures.palette import CATEGORY_COLORS
from explorer.figures.units import bytes_unit, time_unit

_BROWSER = pathlib.Path(__file__).parent / "browser"
_SCRIPTS = ("columns.js", "scales.js", "memory.js")  # read as one module
_MOST_POINTS = 600  # about one for two pixels
_FAR = 2.5  # times what is held: a limit beyond is not drawn, since it would flatten the layers
_ROOM = 1.12  # of what is held, to the top of the axis


class MemoryChart(anywidget.AnyWidget):
    """Layers over time, drawn by our own script: plotly's costs 5 MB before the first picture.

    Attributes:
        chart: as `chart_of` gives it, or empty.
        moment: in the chart's unit of time, whose holders are listed; −1 for none.
        chosen: the moment last clicked, and how many clicks there have been.
    """

    _esm = "\n".join((_BROWSER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    _css = (_BROWSER / "memory.css").read_text(encoding="utf-8")

    chart = traitlets.Dict().tag(sync=True)
    moment = traitlets.Float(-1.0).tag(sync=True)
    chosen: Any = traitlets.List([-1.0, 0]).tag(sync=True)


def chart_of(info: StackInfo, memory_limit: float | None) -> dict[str, Any]:
    """What the browser draws, in units for people.

    Args:
        info: of the rank.
        memory_limit: bytes of its device; None: no limit.

    Returns:
        `times` and of each of `layers` the `levels` from then on; `predicted`, times and levels in all, or None;
        `limit` and its `text`, or None where it lies far above; `peak`; `end` and `top` of the axes with `unit` and
        `timeUnit`; and `label`, for a reader of the screen.
    """
    time, unit = time_unit(float(info.time[-1]), "wall"), info.unit
    rows = _thinned(held_in_all(info.time, info.layers))
    peak_time, peak = info.peak
    highest = max(peak, 0 if info.predicted is None else int(info.predicted[1].max(initial=0)))
    limit = memory_limit if memory_limit is not None and memory_limit <= _FAR * highest else None
    ends = [float(info.time[-1]), *([] if info.predicted is None else [float(info.predicted[0][-1])])]
    text = f"the peak: {unit.show(peak)} at {time.show(peak_time)}"
    return {
        "unit": unit.name,
        "timeUnit": time.name,
        "end": max(ends) * time.factor,
        "top": _ROOM * max(highest, limit or 0, 1) * unit.factor,
        "times": (info.time[rows] * time.factor).tolist(),
        "layers": [
            {
                "title": CATEGORY_TITLES[category],
                "letter": CATEGORY_LETTERS[category],
                "color": CATEGORY_COLORS[category],
                "ink": CATEGORY_INKS[category],
                "levels": (levels[rows] * unit.factor).tolist(),
            }
            for category, levels in info.layers.items()
        ],
        "predicted": _line(info, time.factor),
        "limit": None if limit is None else _limit(limit, unit.factor),
        "peak": {"time": peak_time * time.factor, "level": peak * unit.factor, "text": f"{text}; who holds it"},
        "label": f"Memory of rank {info.rank} over time; {text}",
    }


def _line(info: StackInfo, factor: float) -> dict[str, list[float]] | None:
    if info.predicted is None:
        return None
    times, levels = info.predicted
    rows = _thinned(levels)
    return {"times": (times[rows] * factor).tolist(), "levels": (levels[rows] * info.unit.factor).tolist()}


def _limit(memory_limit: float, factor: float) -> dict[str, Any]:
    return {"level": memory_limit * factor, "text": f"device memory, {bytes_unit(memory_limit).show(memory_limit)}"}


def _thinned(total: npt.NDArray[np.int64], most: int = _MOST_POINTS) -> npt.NDArray[np.int64]:
    """Places of at most `most` points, with the highest and the lowest of each stretch: peaks stay what they are."""
    if len(total) <= most:
        return np.arange(len(total))
    parts = np.array_split(np.arange(len(total)), most // 2)
    return np.unique([place for part in parts for place in (part[total[part].argmax()], part[total[part].argmin()])])
