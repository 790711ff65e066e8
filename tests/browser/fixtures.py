"""A real JupyterLab driven by a headless Chromium: one of each for all tests and benchmarks of a session."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest

from tests.browser.lab import Lab

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TOKEN = "explorer-test"
SERVER_OPTIONS = (
    *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0"),
    f"--IdentityProvider.token={TOKEN}",
)


class Server(NamedTuple):
    """A running JupyterLab: its address with the token, and the folder it shows."""

    url: str
    token: str
    folder: Path


def missing(reason: str) -> None:
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
        missing(f"the browser tests need one of {', '.join(_BROWSERS)}; none is installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A JupyterLab on a free port with folders of its own."""
    home, folder, port = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("notebooks"), free_port()
    command = ["jupyterlab", *SERVER_OPTIONS, f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}"]
    with serving([*command, "--LabApp.expose_app_in_browser=True"], home, f"http://127.0.0.1:{port}/api?token={TOKEN}"):
        yield Server(f"http://127.0.0.1:{port}", TOKEN, folder)


@contextmanager
def serving(module: list[str], home: Path, url: str) -> Iterator[None]:
    """A server: a Python module with its options. It keeps to folders in `home`; its whole process group ends with it.

    It is there as soon as `url` answers.
    """
    environment = {**os.environ}
    environment.pop("JUPYTER_PATH", None)
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        environment[f"JUPYTER_{name}"] = str(home / name.lower())
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(home / "settings")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(home / "workspaces")
    home.mkdir(exist_ok=True)
    _decline_news(home / "settings")
    command = [sys.executable, "-m", *module]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _await(url, process, home / "log")
        yield
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


def _decline_news(settings: Path) -> None:
    """JupyterLab asks at its first start, over the notebook."""
    file = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text('{"fetchNews": "false", "checkForUpdates": false}')


def free_port() -> int:
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
    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")
