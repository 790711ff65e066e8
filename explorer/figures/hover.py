"""What is told of a bar under the pointer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import Kind
from explorer.figures.bars import Bars
from explorer.figures.columns import halved, packed, small_integers
from explorer.figures.palette import KIND_LETTERS, KIND_TITLES
from explorer.figures.units import Unit


def hover(bars: Bars, unit: Unit, *, faint: bool) -> dict[str, Any]:
    """The part of a plotly trace that tells of its bars: whole numbers in `customdata`, times in `hovertext`.

    They are kept apart so that each has no more bytes than it needs, and a time that is the same for all bars is
    written into the template once. plotly's own x of a bar on hovering is its end.
    """
    (takes, waited), times = _told([bars.duration * unit.factor, bars.wait * unit.factor])
    name = f" {unit.name}" if unit.name else ""
    micro_batch = "" if bars.kind in (Kind.G, Kind.U) else ", micro-batch %{customdata[1]:d}"
    template = (
        f"<b>{KIND_LETTERS[bars.kind]} {KIND_TITLES[bars.kind]}</b>{' (predicted)' if faint else ''}<br>"
        f"stage %{{customdata[0]:d}}{micro_batch}<br>"
        f"start %{{base:.6~g}}{name}<br>takes {takes}{name}<br>waited {waited}{name}<extra></extra>"
    )
    told = {
        "customdata": small_integers(np.stack([bars.stage, bars.micro_batch], axis=1)),
        "hovertemplate": template,
    }
    return {**told, "hovertext": packed(np.stack(times, axis=1))} if times else told


def _told(columns: list[npt.NDArray[np.float64]]) -> tuple[list[str], list[npt.NDArray[np.floating[Any]]]]:
    """How the template tells each column, and those that differ from bar to bar."""
    texts: list[str] = []
    differing: list[npt.NDArray[np.floating[Any]]] = []
    for column in map(halved, columns):
        if column.min(initial=np.inf) >= column.max(initial=-np.inf):
            texts.append(f"{column.max(initial=0.0):.4g}")
        else:
            texts.append(f"%{{hovertext[{len(differing)}]:.4~g}}")
            differing.append(column)
    return texts, differing
