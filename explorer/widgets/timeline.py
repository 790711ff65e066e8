"""The canvas of bars inside the figure: what the browser is told, and what it tells."""

from __future__ import annotations

import pathlib
from typing import Any

import anywidget
import traitlets

from explorer.core import Kind
from explorer.core.events import Origin
from explorer.figures.palette import KIND_COLORS, KIND_INKS, KIND_LETTERS, KIND_TITLES, RANK_COLORS

# messages are legended by their sending end
LEGEND_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R, Kind.SEND_F, Kind.SEND_B, Kind.G, Kind.U)
_LEGENDED_AS = {Kind.RECV_F: Kind.SEND_F, Kind.RECV_B: Kind.SEND_B}
_THIN = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
_BROWSER = pathlib.Path(__file__).parent / "browser"
# read as one module, in this order
_SCRIPTS = ("columns.js", "bars.js", "lines.js", "axes.js", "interaction.js", "timeline.js")


def _look() -> dict[str, Any]:
    """How each kind looks, in the order of Kind."""
    return {
        "colors": [KIND_COLORS[kind] for kind in Kind],
        "inks": [KIND_INKS[kind] for kind in Kind],
        "letters": [KIND_LETTERS[kind] for kind in Kind],
        "titles": [KIND_TITLES[kind] for kind in Kind],
        "thin": [kind in _THIN for kind in Kind],
        "legend": [LEGEND_KINDS.index(_LEGENDED_AS.get(kind, kind)) for kind in Kind],
        "lines": list(RANK_COLORS),
        "firstLine": len(LEGEND_KINDS),  # place of the first rank among the figure's traces
        "origins": [origin.name.lower() for origin in Origin],
    }


class Timeline(anywidget.AnyWidget):
    """Bars and memory lines on canvases within `figure`'s two plots; it knows columns, not traces.

    Attributes:
        figure: the plotly figure it draws into.
        look: how kinds look.
        view: `n_ranks`, `whole`, the stretch of time in ms, and attributes of plotly's `axes` and `legends`.
        zoom: the stretch in ms that the user looks at, or empty for the whole.
        predicted: packed columns; faint where there are measured ones.
        measured: packed columns, or empty.
        lines: packed lines of the memory row, `predicted` and `measured`, with the `ranks` they are of and their unit.
        label: what a screen reader says.
        stale: whether the picture is older than the controls.
        seq: number of the frame; sent with all that is new of it.
        painted: number of the frame the browser last painted.
        dark: whether the page is.
    """

    _esm = "\n".join((_BROWSER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    _css = (_BROWSER / "timeline.css").read_text(encoding="utf-8")

    figure = anywidget.WidgetTrait().tag(sync=True)
    look = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    zoom: Any = traitlets.List().tag(sync=True)
    predicted = traitlets.Dict().tag(sync=True)
    measured = traitlets.Dict().tag(sync=True)
    lines = traitlets.Dict().tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)
    seq = traitlets.Int(0).tag(sync=True)
    painted = traitlets.Int(0).tag(sync=True)
    dark = traitlets.Bool(False).tag(sync=True)

    def __init__(self, figure: Any) -> None:
        empty = {"n_ranks": 1, "whole": [0.0, 1.0], "axes": {}, "legends": {"name": [], "showlegend": []}}
        super().__init__(figure=figure, look=_look(), view=empty)
