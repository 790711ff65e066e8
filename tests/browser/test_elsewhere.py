"""The app and a figure in Notebook 7 and in Voila, where nothing but this machine can be reached."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.fixtures import SERVER_OPTIONS, TOKEN, free_port, missing, serving, write_notebook
from tests.browser.lab import Page

CELLS = [
    "import explorer as ex\napp = ex.explore(backend='kernel', run_on_change=False)\napp",
    "ex.timeline(ex.simulate(ex.schedule('1f1b', n_ranks=4, n_micro_batches=8)))",
]
# said by each of itself, for a notebook of 1+1 as well; the last by plotly's renderer in Voila, of any figure that it
# has drawn
OF_NOTEBOOK = ("Menu entry for command", "[yjs#509]", "(reading 'schema')\n    at http://127.0.0.1")
OF_VOILA = (
    *("of shared singleton module", "of shared module", "@jupyter-notebook/lab-extension"),
    "setData is not a function",
)


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    """An empty page."""
    context = browser.new_context(viewport={"width": 1280, "height": 1250})
    yield Page(context.new_page())
    context.close()


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        missing(f"the test in {package} needs the package {package}")


def check_app_and_figure(page: Page, own: tuple[str, ...]) -> None:
    """The app is painted and follows a slider, the figure has its bars, and only what is the host's `own` is said."""
    page.await_data("Number(d.paintedSeq) >= 1", timeout=60_000)  # Voila starts its kernel and runs all cells first
    assert page.data("barsDrawn") == "64"  # 4 ranks × 8 micro-batches × F and B
    painted = int(page.data("paintedSeq"))
    page.drag("Micro-batches", 40)
    page.await_data("Number(d.barsDrawn) > 64")
    assert int(page.data("paintedSeq")) > painted
    assert "Predicted from the costs set here" in page.status()
    page.page.wait_for_function("document.querySelectorAll('.barlayer .point').length === 64")
    page.page.locator(".gtitle").get_by_text("1f1b · 4 ranks, 8 micro-batches · simulated").wait_for()
    assert [said for said in page.complaints if not any(known in said for known in own)] == []


def test_app_and_figure_show_in_notebook_7(page: Page, tmp_path: Path) -> None:
    needs("notebook")
    write_notebook(tmp_path, "cells.ipynb", CELLS)
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ["notebook", *SERVER_OPTIONS, f"--ServerApp.port={port}", f"--ServerApp.root_dir={tmp_path}"]
    command += ["--JupyterNotebookApp.expose_app_in_browser=True"]
    with serving(command, tmp_path / "home", f"{url}/api?token={TOKEN}"):
        page.goto(f"{url}/notebooks/cells.ipynb?token={TOKEN}")
        page.run_all()
        check_app_and_figure(page, OF_NOTEBOOK)


def test_app_and_figure_show_in_voila(page: Page, tmp_path: Path) -> None:
    needs("voila")
    write_notebook(tmp_path, "cells.ipynb", CELLS)
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ["voila", str(tmp_path), "--no-browser", "--Voila.ip=127.0.0.1", f"--port={port}"]
    with serving(command, tmp_path / "home", f"{url}/voila/static/voila.js"):
        page.page.goto(f"{url}/voila/render/cells.ipynb", wait_until="commit")  # it ends after the last cell
        check_app_and_figure(page, OF_VOILA)
