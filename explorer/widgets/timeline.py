"""The picture of the app: what the browser is told, and what it tells."""

from __future__ import annotations

import pathlib
from dataclasses import asdict
from typing import Any

import anywidget
import traitlets

from explorer.core import Kind
from explorer.core.events import Origin
from explorer.figures.palette import DARK, KIND_COLORS, KIND_INKS, KIND_LETTERS, KIND_TITLES, LIGHT, RANK_COLORS

# messages are legended by their sending end
LEGEND_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R, Kind.SEND_F, Kind.SEND_B, Kind.G, Kind.U)
LEGENDED_AS = {Kind.RECV_F: Kind.SEND_F, Kind.RECV_B: Kind.SEND_B}
_THIN = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
_BROWSER = pathlib.Path(__file__).parent / "browser"
# read as one module, in this order
_SCRIPTS = (
    *("later.js", "columns.js", "lanes.js", "scales.js", "axes.js", "coverage.js", "bars.js", "gaps.js", "lines.js"),
    *("marks.js", "selection.js", "search.js", "paint.js", "numbers.js", "legend.js", "hover.js", "zoom.js", "drag.js"),
    *("reorder.js", "keys.js", "overview.js", "svg.js", "save.js", "timeline.js"),
)

SCRIPT = "\n".join((_BROWSER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
STYLE_SHEET = (_BROWSER / "timeline.css").read_text(encoding="utf-8")


def _look() -> dict[str, Any]:
    """How each kind looks, in the order of Kind."""
    return {
        "colors": [KIND_COLORS[kind] for kind in Kind],
        "inks": [KIND_INKS[kind] for kind in Kind],
        "letters": [KIND_LETTERS[kind] for kind in Kind],
        "titles": [KIND_TITLES[kind] for kind in Kind],
        "thin": [kind in _THIN for kind in Kind],
        "legend": [LEGEND_KINDS.index(LEGENDED_AS.get(kind, kind)) for kind in Kind],
        "keys": [_key(kind) for kind in LEGEND_KINDS],
        "keyColors": [KIND_COLORS[kind] for kind in LEGEND_KINDS],
        "lines": list(RANK_COLORS),
        "light": asdict(LIGHT),
        "dark": asdict(DARK),
        "origins": ["predicted" if origin == Origin.SIMULATED else origin.name.lower() for origin in Origin],
    }


def _key(kind: Kind) -> str:
    return f"{kind.name}  {KIND_TITLES[kind]}" if len(kind.name) == 1 else KIND_TITLES[kind]


class Timeline(anywidget.AnyWidget):
    """Numbers, bars and memory lines with their axes and legends; it knows columns, not traces.

    All of it is drawn by our own script on one canvas: a plotly figure with the same axes costs 5 MB of JavaScript
    before the first picture, and each move of its axes takes the browser as long as all else together.

    Attributes:
        look: how kinds and themes look.
        view: `n_ranks`; `whole`, the stretch of time in ms; `top` and `title` of the memory row; `kinds`, the places
            in LEGEND_KINDS of those that occur; `live`, whether more frames follow by themselves.
        zoom: the stretch in ms that the user looks at, or empty for the whole.
        search: what the user looks for, such as "m5" or "stage 2 B7".
        selected: what the user has chosen, {} if nothing: `of`, "predicted" or "measured", and either `row`, a place in
            its columns, or `from` and `to` in ms with `ranks`, the first and the last.
        hidden: what the user has switched off in the legends, as "kind 0" or "rank 0" by place.
        predicted: packed columns; faint where there are measured ones.
        measured: packed columns, or empty.
        lines: packed lines of the memory row, `predicted` and `measured`, with the `ranks` they are of and their unit.
        explain: whether the user wants idle time coloured by its cause.
        editing: whether bars can be moved along their rank.
        gaps: packed idle intervals, or empty.
        marks: what is to be said of single moments, each with `rank`, `time` in ms and `text`.
        name: of the files that the picture is saved as.
        frozen: whether there is no kernel to ask for files.
        numbers: measures, each with `name`, `values` and what they are shares `of`.
        note: a line under the picture.
        label: what a screen reader says.
        stale: whether the picture is older than the controls.
        seq: number of the frame; sent with all that is new of it.
        painted: number of the frame the browser last painted.
    """

    _esm = SCRIPT
    _css = STYLE_SHEET

    look = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    zoom: Any = traitlets.List().tag(sync=True, echo_update=False)
    search = traitlets.Unicode("").tag(sync=True, echo_update=False)
    selected = traitlets.Dict().tag(sync=True, echo_update=False)
    hidden: Any = traitlets.List().tag(sync=True, echo_update=False)
    predicted = traitlets.Dict().tag(sync=True)
    measured = traitlets.Dict().tag(sync=True)
    lines = traitlets.Dict().tag(sync=True)
    explain = traitlets.Bool(False).tag(sync=True, echo_update=False)
    editing = traitlets.Bool(False).tag(sync=True)
    gaps = traitlets.Dict().tag(sync=True)
    marks: Any = traitlets.List().tag(sync=True)
    name = traitlets.Unicode("pipeline").tag(sync=True)
    frozen = traitlets.Bool(False).tag(sync=True)
    numbers: Any = traitlets.List().tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)
    seq = traitlets.Int(0).tag(sync=True)
    # with its echo: the kernel answers where a widget last spoke from, and what spoke from a cell would wait for cells
    painted = traitlets.Int(0).tag(sync=True)

    def __init__(self) -> None:
        super().__init__(
            look=_look(), view={"n_ranks": 1, "whole": [0.0, 1.0], "top": 1.0, "title": "", "kinds": [], "live": False}
        )
