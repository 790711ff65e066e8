"""One plotly FigureWidget for axes, legend, mode bar and memory row, with its defects cured."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explorer.core import Kind
from explorer.figures.palette import DARK, KIND_COLORS, KIND_TITLES, LIGHT, RANK_COLORS
from explorer.widgets.curves import MOST_RANKS, Curves
from explorer.widgets.timeline import LEGEND_KINDS

_FIRST_LINE = len(LEGEND_KINDS)  # after the legend's traces: predicted and measured, a pair for each rank drawn
_TRANSPARENT = "rgba(0,0,0,0)"
_MOST_TICKS = 16


class LiveFigure(go.FigureWidget):  # type: ignore[misc]
    """A FigureWidget that can be reloaded, freed and resized, and uploads nothing."""

    # as a file, its contents are watched by an object that keeps every closed figure alive
    _esm = str(go.FigureWidget._esm)

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
            self._trait_values["_widget_layout"] = deepcopy(self._layout_obj._props)
        return super().get_state(key=key, drop_defaults=drop_defaults)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.data)} traces)"


def live_figure() -> LiveFigure:
    """The figure, empty: the timeline row with a legend, the memory row below, one axis of time."""
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.7, 0.3], vertical_spacing=0.05)
    for kind in LEGEND_KINDS:
        figure.add_trace(_legend_entry(kind), 1, 1)
    for place in range(MOST_RANKS):
        color = RANK_COLORS[place % len(RANK_COLORS)]
        figure.add_trace(_line(color, 1.2, "dot", 0.75), 2, 1)
        figure.add_trace(_line(color, 1.8, "solid", 1.0), 2, 1)
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
    figure.update_yaxes(row=1, col=1, fixedrange=True, showgrid=False, zeroline=False)
    figure.update_yaxes(row=2, col=1, fixedrange=True, rangemode="tozero", zeroline=False)
    figure.update_xaxes(row=1, col=1, showticklabels=False, zeroline=False)
    figure.update_xaxes(row=2, col=1, title={"text": "time, ms", "standoff": 6}, zeroline=False)
    return LiveFigure(figure)


def show_kinds(figure: LiveFigure, kinds: set[int]) -> None:
    """Legend only what occurs."""
    for place, kind in enumerate(LEGEND_KINDS):
        present = int(kind) in kinds
        if figure.data[place].showlegend != present:
            figure.data[place].showlegend = present


def show_lanes(figure: LiveFigure, n_ranks: int) -> None:
    """One lane a rank, rank 0 on top."""
    axis = figure.layout.yaxis
    wanted = (n_ranks - 0.5, -0.5)
    if tuple(axis.range or ()) != wanted:
        step = -(-n_ranks // _MOST_TICKS)
        ranks = list(range(0, n_ranks, step))
        axis.update(range=wanted, tickmode="array", tickvals=ranks, ticktext=[f"rank {rank}" for rank in ranks])


def show_curves(figure: LiveFigure, predicted: Curves | None, measured: Curves | None) -> None:
    """The memory row: predicted lines dotted, measured ones solid; a prediction alone is solid too."""
    shown = measured or predicted
    ranks = shown.ranks if shown else []
    if shown and figure.layout.yaxis2.title.text != shown.title:
        figure.layout.yaxis2.title = {"text": shown.title, "standoff": 8}
    for place in range(MOST_RANKS):
        rank = ranks[place] if place < len(ranks) else None
        for offset, some in enumerate((predicted, measured)):
            solid = some is measured or measured is None
            _show_line(figure.data[_FIRST_LINE + 2 * place + offset], some, place, rank, solid=solid)


def _show_line(line: Any, some: Curves | None, place: int, rank: int | None, *, solid: bool) -> None:
    if some is None or rank is None or place >= len(some.lines):
        if line.visible is not False:
            line.update(visible=False, x=[], y=[])
        return
    time, level = some.lines[place]
    line.update(x=time, y=level, name=f"rank {rank}", visible=True, showlegend=solid)
    dash = "solid" if solid else "dot"
    if line.line.dash != dash:
        line.line.dash = dash


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


def _line(color: str, width: float, dash: str, opacity: float) -> go.Scatter:
    style = {"color": color, "width": width, "dash": dash, "shape": "hv"}
    hover = "%{fullData.name}: %{y:.4~g} at %{x:.4~g} ms<extra></extra>"
    return go.Scatter(
        x=[], y=[], mode="lines", line=style, opacity=opacity, hovertemplate=hover, visible=False, legend="legend2"
    )
