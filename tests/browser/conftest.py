"""The app, open in a notebook of its own, and a picture, open as a saved page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import explorer as ex
from explorer.widgets.gaps import Gaps, pack_gaps
from explorer.widgets.page import picture_page
from explorer.widgets.picture import Frame, Picture
from tests.browser.fixtures import write_notebook
from tests.browser.lab import Lab, Page
from tests.browser.shown import Shown


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder open a browser."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker("browser")
            item.add_marker("slow")


@pytest.fixture
def app(lab: Lab) -> Page:
    """The app as it opens, in a notebook of its own."""
    write_notebook(lab.folder, "app.ipynb", ["import explorer as ex\napp = ex.explore(backend='kernel')\napp", "1+1"])
    page = lab.open("app.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    return page


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """Opens a picture as a saved page."""
    context = browser.new_context(viewport={"width": 1280, "height": 700}, accept_downloads=True)

    def opened(trace: ex.Trace, gaps: Gaps | None = None) -> Shown:
        picture = Picture(threading.RLock())
        picture.show(Frame(trace, None, "a <b>label</b>", trace.makespan))
        if gaps:
            picture.timeline.gaps = pack_gaps(gaps, trace.n_ranks)
        file = tmp_path / "page.html"
        file.write_text(picture_page(picture.timeline), encoding="utf-8")
        picture.close()
        shown = Shown(context.new_page())
        shown.page.goto(file.as_uri())
        shown.page.wait_for_function("document.querySelector('.pipeline-timeline')?.dataset.barsDrawn")
        return shown

    yield opened
    context.close()
