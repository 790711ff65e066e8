"""Which notebooks `explorer lab` opens, and how; the server itself belongs to the browser test."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading

import pytest

from explorer.cli import lab, main
from explorer.errors import InputError, MissingError


def wheel(tmp_path):
    """A package as a wheel lays it down."""
    shipped = tmp_path / "site" / "explorer" / "notebooks"
    shipped.mkdir(parents=True)
    (shipped / lab.NOTEBOOK).write_text("new")
    (shipped / "01-the-assembly-line.ipynb").write_text("new")
    return shipped.parent


def test_a_clone_opens_its_own_notebooks(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / lab.NOTEBOOK).write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    assert lab.notebooks_folder(tmp_path / "explorer", tmp_path / "here", None) == tmp_path / "notebooks"


def test_a_wheel_copies_its_notebooks_and_keeps_edited_ones(tmp_path):
    package = wheel(tmp_path)
    folder = lab.notebooks_folder(package, tmp_path, None)
    assert folder == tmp_path / "pipeline-explorer-notebooks"
    (folder / lab.NOTEBOOK).write_text("edited")
    (folder / "01-the-assembly-line.ipynb").unlink()
    lab.notebooks_folder(package, tmp_path, None)
    assert (folder / lab.NOTEBOOK).read_text() == "edited"
    assert (folder / "01-the-assembly-line.ipynb").read_text() == "new"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name another: explorer lab FOLDER"):
        lab.notebooks_folder(wheel(tmp_path), tmp_path, "file/inside")


def test_an_installation_without_notebooks_says_so(tmp_path):
    with pytest.raises(MissingError, match="install pipeline-explorer again"):
        lab.notebooks_folder(tmp_path / "explorer", tmp_path, None)


def test_the_server_listens_on_loopback_at_the_apps_notebook():
    words = lab.command(has_browser=False)
    assert "--ServerApp.ip=127.0.0.1" in words
    assert f"--LabApp.default_url=/lab/tree/{lab.NOTEBOOK}" in words
    assert "--no-browser" in words
    assert "--no-browser" not in lab.command(has_browser=True)


def test_without_jupyterlab_the_line_to_install_it_is_given(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["lab"]) == 2
    assert 'pip install "pipeline-explorer[lab]"' in capsys.readouterr().err


def test_an_interrupt_ends_the_server(monkeypatch, tmp_path):
    started = []
    popen = subprocess.Popen

    def remember(*arguments, **options):
        started.append(popen(*arguments, **options))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", remember)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        lab._serve([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
    assert started[0].poll() is not None
    assert signal.getsignal(signal.SIGINT) is before
