"""A real JupyterLab with the app in it, driven by a headless Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest

import explorer as ex
from explorer.widgets.gaps import Gaps, pack_gaps
from explorer.widgets.page import picture_page
from explorer.widgets.picture import Frame, Picture
from tests.browser.lab import Lab, Page
from tests.browser.shown import Shown

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_TOKEN = "explorer-test"


class Server(NamedTuple):
    """A running JupyterLab: its address with the token, and the folder it shows."""

    url: str
    token: str
    folder: Path


def _missing(reason: str) -> None:
    """A skip with its reason on a user's machine; a failure in CI, where it must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, and CI must not go without")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; no web page but this machine's is reachable from it."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        _missing(f"the browser tests need one of {', '.join(_BROWSERS)}; none is installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A JupyterLab on a free port with folders of its own; its whole process group ends with the tests."""
    home = tmp_path_factory.mktemp("jupyter")
    folder = tmp_path_factory.mktemp("notebooks")
    port = _free_port()
    environment = {**os.environ}
    environment.pop("JUPYTER_PATH", None)
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        environment[f"JUPYTER_{name}"] = str(home / name.lower())
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(home / "settings")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(home / "workspaces")
    _decline_news(home / "settings")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True", "--ServerApp.port_retries=0"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _await(f"http://127.0.0.1:{port}/api?token={_TOKEN}", process, home / "log")
        yield Server(f"http://127.0.0.1:{port}", _TOKEN, folder)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def lab(browser: Any, server: Server) -> Iterator[Lab]:
    """Opens notebooks; pages and kernels end with the test."""
    opened = Lab(browser, server.url, server.token, server.folder)
    yield opened
    opened.close()


def write_notebook(folder: Path, name: str, cells: list[str]) -> None:
    """A notebook of these code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / name)


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


def _decline_news(settings: Path) -> None:
    """JupyterLab asks at its first start, over the notebook."""
    file = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text('{"fetchNews": "false", "checkForUpdates": false}')


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if process.poll() is not None:
                break
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")
