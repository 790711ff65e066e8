"""Figures as files that open anywhere, without a network."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from explorer.errors import InputError
from explorer.figures.document import document
from explorer.figures.palette import DARK, LIGHT, Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

_CONFIG = {"displaylogo": False, "showSendToCloud": False, "responsive": True, "scrollZoom": True}

_STYLE = Template(
    """body { margin: 0; padding: 8px; background: $light_paper; font-family: sans-serif; }
@media (prefers-color-scheme: dark) { body { background: $dark_paper; } }"""
)

# plotly sets its colours itself, so the page's theme has to be handed to it
_FOLLOW_THEME = Template(
    """
const page = document.getElementById("{plot_id}");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const axes = Object.keys(page.layout).filter(key => /^[xy]axis/.test(key) && page.layout[key].gridcolor);
function follow() {
  const [text, grid] = dark.matches ? ["$dark_text", "$dark_grid"] : ["$light_text", "$light_grid"];
  const changes = {"font.color": text};
  for (const axis of axes) changes[axis + ".gridcolor"] = grid;
  Plotly.relayout(page, changes);
}
dark.addEventListener("change", follow);
follow();
"""
)


def write_html(figure: go.Figure, path: str | PathLike[str], *, title: str = "Pipeline Explorer") -> Path:
    """Write `figure` as one page that needs no network and follows the reader's light or dark theme.

    Args:
        figure: any plotly figure.
        path: of the file; what is there is replaced.
        title: of the page, as plain text.

    Returns:
        The path written.

    Raises:
        InputError: if the file cannot be written.
    """
    check_path(path)
    if not hasattr(figure, "to_html"):
        raise InputError(
            f"a page shows a plotly figure; got {type(figure).__name__}; draw one with explorer.timeline(trace)",
            argument="figure",
        )
    colors = {**_colors("light", LIGHT), **_colors("dark", DARK)}
    script = _FOLLOW_THEME.substitute(colors)
    drawn = figure.to_html(config=_CONFIG, include_plotlyjs=True, full_html=False, post_script=script)
    page = document(title, style=_STYLE.substitute(colors), body=drawn)
    target = Path(path)
    try:
        target.write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"a page needs a path that can be written; got {str(path)!r} ({reason}); try a file in an existing folder",
            argument="path",
        ) from error
    return target


def check_path(path: str | PathLike[str]) -> None:
    """Refuse, before anything is worked out, a path at which no page can be written.

    Raises:
        InputError: if it is no path, a folder, or in a folder that is not there.
    """
    try:
        target = Path(path)
        fits = not target.is_dir() and target.parent.is_dir() and "\0" not in target.name
    except (TypeError, ValueError, OSError):
        fits = False
    if not fits:
        raise InputError(
            f"a page needs a path that can be written; got {str(path)!r}; try a file in an existing folder",
            argument="path",
        )


def _colors(name: str, theme: Theme) -> dict[str, str]:
    return {f"{name}_text": theme.text, f"{name}_grid": theme.grid, f"{name}_paper": theme.paper}
