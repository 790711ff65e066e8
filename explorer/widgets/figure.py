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
    figure.update_yaxes(
        row=1, col=1, range=[0.5, -0.5], fixedrange=True, showgrid=False, zeroline=False, tickmode="array"
    )
    figure.update_yaxes(row=2, col=1, fixedrange=True, range=[0, 1], zeroline=False, title={"standoff": 8})
    # with ranges of their own from the start, no axis ever scales itself to the empty traces of the legends
    figure.update_xaxes(row=1, col=1, range=[0, 1], showticklabels=False, zeroline=False)
    figure.update_xaxes(row=2, col=1, range=[0, 1], title={"text": "time, ms", "standoff": 6}, zeroline=False)
    return LiveFigure(figure)


def legends(kinds: set[int], ranks: list[int]) -> dict[str, list[Any]]:
    """Names of all legend entries, and which are shown: the kinds that occur, and the ranks that are drawn."""
    names = [f"rank {rank}" for rank in ranks]
    left_out = MOST_RANKS - len(ranks)
    return {
        "name": [*map(_kind_name, LEGEND_KINDS), *names, *[""] * left_out],
        "showlegend": [*(int(kind) in kinds for kind in LEGEND_KINDS), *[True] * len(ranks), *[False] * left_out],
    }


def axes(*, n_ranks: int, top: float, title: str) -> dict[str, Any]:
    """Attributes of plotly's layout: a lane for each rank, rank 0 on top, and the memory row's top and title."""
    ranks = list(range(0, n_ranks, -(-n_ranks // _MOST_TICKS)))
    return {
        "yaxis.range": [n_ranks - 0.5, -0.5],
        "yaxis.tickvals": ranks,
        "yaxis.ticktext": [f"rank {rank}" for rank in ranks],
        "yaxis2.range": [0, top],
        "yaxis2.title.text": title,
    }


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
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=_kind_name(kind), hoverinfo="skip")


def _kind_name(kind: Kind) -> str:
    return f"{kind.name}  {KIND_TITLES[kind]}" if len(kind.name) == 1 else KIND_TITLES[kind]


def _rank_entry(color: str) -> go.Scatter:
    style = {"color": color, "width": 1.8}
    return go.Scatter(
        x=[None], y=[None], mode="lines", line=style, showlegend=False, name="", legend="legend2", hoverinfo="skip"
    )
