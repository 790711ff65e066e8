"""Figures as PNG and SVG, drawn by a Chrome or Chromium that is there; no service and no further package."""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from explorer.errors import InputError
from explorer.figures.export import check_path

if TYPE_CHECKING:
    import plotly.graph_objects as go

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 60  # seconds for the browser
_SMALLEST, _LARGEST = 100, 8000  # pixels
_SCRIPT = Template(
    """
Plotly.toImage(document.getElementById("{plot_id}"), {format: "$format", width: $width, height: $height, scale: 2})
  .then((url) => { const made = document.createElement("pre"); made.id = "made"; made.textContent = url;
    document.body.replaceChildren(made); });
"""
)


def write_image(figure: go.Figure, path: str | PathLike[str], *, width: int = 1100, height: int | None = None) -> Path:
    """Write `figure` as .png (two pixels for one) or .svg; the suffix decides.

    Args:
        figure: any plotly figure.
        path: of the file; what is there is replaced.
        width: in pixels.
        height: in pixels; None: the figure's own.

    Returns:
        The path written.

    Raises:
        InputError: if the suffix is another, the size is none, the file cannot be written, or there is no Chrome or
            Chromium, or it fails.
    """
    check_path(path)
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg"):
        raise InputError(f"an image is .png or .svg; got {Path(path).name!r}; try image.png", argument="path")
    if not hasattr(figure, "to_html"):
        raise InputError(
            f"an image shows a plotly figure; got {type(figure).__name__}; draw one with explorer.timeline(trace)",
            argument="figure",
        )
    tall = height if height is not None else int(figure.layout.height or 450)
    for name, size in (("width", width), ("height", tall)):
        if not isinstance(size, int) or not _SMALLEST <= size <= _LARGEST:
            raise InputError(f"{name} is {_SMALLEST} to {_LARGEST} pixels; got {size!r}; try 800", argument=name)
    url = _drawn(figure, _browser(shutil.which), suffix[1:], width, tall)
    kind, _, data = url.partition(",")
    content = base64.b64decode(data) if kind.endswith("base64") else urllib.parse.unquote_to_bytes(data)
    target = Path(path)
    try:
        target.write_bytes(content)
    except OSError as error:
        raise InputError(
            f"an image needs a path that can be written; got {str(path)!r} ({error.strerror or error}); try a file in "
            "another folder",
            argument="path",
        ) from error
    return target


def _browser(find: Callable[[str], str | None]) -> str:
    """The path of a browser."""
    found = next(filter(None, map(find, _BROWSERS)), None)
    if found is None:
        raise InputError(
            f"an image is drawn by Chrome or Chromium; found none of {', '.join(_BROWSERS)}; install one, or write a "
            "page with explorer.write_html",
            argument="path",
        )
    return found


def _drawn(figure: go.Figure, browser: str, kind: str, width: int, height: int) -> str:
    """The image as a data URL."""
    script = _SCRIPT.substitute(format=kind, width=width, height=height)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        # plotly puts the id into the script by a plain replacement, so the script's other braces stay
        page.write_text(figure.to_html(include_plotlyjs=True, post_script=script), encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"]
        command += ["--virtual-time-budget=20000", "--host-resolver-rules=MAP * ~NOTFOUND"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # it has none for root, and the page is our own
        try:
            done = subprocess.run([*command, page.as_uri()], capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(
                f"an image needs a browser that runs; {browser} did not: {error}", argument="path"
            ) from error
    found = re.search(rb'<pre id="made">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise InputError(
            f"an image needs a browser that draws it; {browser} gave none; write a page with explorer.write_html",
            argument="path",
        )
    return html.unescape(found.group(1).decode("utf-8"))
