"""One plotly FigureWidget for axes, legends and mode bar, with its defects cured; bars and lines are the canvas's."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explorer.core import Kind
from explorer.figures.palette import DARK, KIND_COLORS, KIND_TITLES, LIGHT, RANK_COLORS
from explorer.widgets.curves import MOST_RANKS
from explorer.widgets.timeline import LEGEND_KINDS

_FIRST_LINE = len(LEGEND_KINDS)  # the memory row's legend comes after the timeline's
_TRANSPARENT = "rgba(0,0,0,0)"
_MOST_TICKS = 16


class LiveFigure(go.FigureWidget):  # type: ignore[misc]
    """A FigureWidget that can be reloaded, freed and resized, and uploads nothing."""

    # as a file, its contents are watched by an object that keeps every closed figure alive
    _esm = str(go.FigureWidget._esm)  # noqa: SLF001

    def __init__(self, figure: go.Figure) -> None:
        super().__init__(figure)
        self._config = {
            "responsive": True,
            "displaylogo": False,
            "showSendToCloud": False,
            "scrollZoom": True,
            # the camera would leave the canvas out
            "modeBarButtonsToRemove": ["toImage", "select2d", "lasso2d", "autoScale2d"],
        }

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """What a new page is sent: the figure as it is now, not as it was made."""
        if key is None and getattr(self, "_layout_obj", None) is not None:
            self._trait_values["_widget_data"] = deepcopy(self._data)
            self._trait_values["_widget_layout"] = deepcopy(self._layout_obj._props)  # noqa: SLF001
        return super().get_state(key=key, drop_defaults=drop_defaults)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.data)} traces)"


def live_figure() -> LiveFigure:
    """The figure, empty: the timeline row with a legend, the memory row below, one axis of time."""
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.7, 0.3], vertical_spacing=0.05)
    for kind in LEGEND_KINDS:
        figure.add_trace(_legend_entry(kind), 1, 1)
    for place in range(MOST_RANKS):
        figure.add_trace(_rank_entry(RANK_COLORS[place % len(RANK_COLORS)]), 2, 1)
    figure.update_layout(
        height=470,
        margin={"l": 62, "r": 12, "t": 34, "b": 40},
        dragmode="pan",
        hovermode="closest",
        template="none",
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        legend2={"orientation": "h", "y": -0.11, "yanchor": "top", "x": 1, "xanchor": "right", "font": {"size": 11}},
        **_themed(dark=False),
    )
    figure.update_yaxes(row=1, col=1, fixedrange=True, showgrid=False, zeroline=False, tickmode="array")
    figure.update_yaxes(row=2, col=1, fixedrange=True, range=[0, 1], zeroline=False, title={"standoff": 8})
    figure.update_xaxes(row=1, col=1, showticklabels=False, zeroline=False)
    figure.update_xaxes(row=2, col=1, title={"text": "time, ms", "standoff": 6}, zeroline=False)
    return LiveFigure(figure)


def show_kinds(figure: LiveFigure, kinds: set[int]) -> None:
    """Legend only what occurs; sent only when that changes."""
    present = [int(kind) in kinds for kind in LEGEND_KINDS]
    if [figure.data[place].showlegend for place in range(_FIRST_LINE)] != present:
        figure.plotly_restyle({"showlegend": present}, trace_indexes=list(range(_FIRST_LINE)))


def show_ranks(figure: LiveFigure, ranks: list[int]) -> None:
    """Legend the ranks that the memory row draws; sent only when they change."""
    names = [f"rank {ranks[place]}" if place < len(ranks) else "" for place in range(MOST_RANKS)]
    lines = list(range(_FIRST_LINE, _FIRST_LINE + MOST_RANKS))
    if [figure.data[place].name for place in lines] != names:
        figure.plotly_restyle({"name": names, "showlegend": [bool(name) for name in names]}, trace_indexes=lines)


def show_axes(figure: LiveFigure, *, n_ranks: int, range_ms: list[float] | None, top: float, title: str) -> None:
    """Lanes, stretch of time and the memory row's axis, in one message of what changed.

    Args:
        figure: to change.
        n_ranks: one lane each, rank 0 on top.
        range_ms: what stretch of time to show; None to leave it.
        top: of the memory row.
        title: of the memory row.
    """
    layout: dict[str, Any] = {} if range_ms is None else {"xaxis.range": range_ms, "xaxis2.range": range_ms}
    if tuple(figure.layout.yaxis.range or ()) != (n_ranks - 0.5, -0.5):
        layout |= _lanes(n_ranks)
    if tuple(figure.layout.yaxis2.range or ()) != (0, top):
        layout["yaxis2.range"] = [0, top]
    if figure.layout.yaxis2.title.text != title:
        layout["yaxis2.title.text"] = title
    if layout:
        figure.plotly_relayout(layout)


def _lanes(n_ranks: int) -> dict[str, Any]:
    ranks = list(range(0, n_ranks, -(-n_ranks // _MOST_TICKS)))
    names = [f"rank {rank}" for rank in ranks]
    return {"yaxis.range": [n_ranks - 0.5, -0.5], "yaxis.tickvals": ranks, "yaxis.ticktext": names}


def show_theme(figure: LiveFigure, *, dark: bool) -> None:
    """Text and grid for JupyterLab's dark or light theme; the page shows through."""
    with figure.batch_update():
        figure.update_layout(**_themed(dark=dark))


def _themed(*, dark: bool) -> dict[str, Any]:
    theme = DARK if dark else LIGHT
    axis = {"gridcolor": theme.grid, "linecolor": theme.grid, "tickcolor": theme.grid, "ticks": "outside", "ticklen": 4}
    return {
        "font": {"color": theme.text, "size": 12},
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": theme.idle,
        "hoverlabel": {"bgcolor": theme.paper, "font": {"color": theme.text}},
        "modebar": {"bgcolor": _TRANSPARENT, "color": theme.text, "activecolor": "#0a6ebd"},
        **dict.fromkeys(("xaxis", "xaxis2", "yaxis", "yaxis2"), axis),
    }


def _legend_entry(kind: Kind) -> go.Scatter:
    marker = {"symbol": "square", "size": 12, "color": KIND_COLORS[kind]}
    name = f"{kind.name}  {KIND_TITLES[kind]}" if len(kind.name) == 1 else KIND_TITLES[kind]
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, hoverinfo="skip")


def _rank_entry(color: str) -> go.Scatter:
    style = {"color": color, "width": 1.8}
    return go.Scatter(
        x=[None], y=[None], mode="lines", line=style, showlegend=False, name="", legend="legend2", hoverinfo="skip"
    )
