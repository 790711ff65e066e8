"""Figures as images, drawn by a browser that is there."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

import explorer as ex
from explorer.errors import InputError
from explorer.figures import image
from tests.figures.test_timeline import simulated

pytestmark = pytest.mark.slow


def test_svg_is_written(tmp_path):
    if not any(map(shutil.which, image._BROWSERS)):
        pytest.skip("no Chrome or Chromium is installed")
    text = ex.write_image(ex.timeline(simulated()), tmp_path / "image.svg", width=800).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert 'width="800"' in text[:300]
    assert "B2" in text


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("image.gif", {}, "an image is .png or .svg; got 'image.gif'; try image.png"),
        ("image.png", {"width": 3}, "width is 100 to 8000 pixels; got 3; try 800"),
        ("image.png", {"height": 1e4}, "height is 100 to 8000 pixels; got 10000.0"),
        ("absent/image.png", {}, "a path that can be written"),
        ("\0.png", {}, "a path that can be written"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, size, message):
    with pytest.raises(InputError, match=message):
        ex.write_image(ex.timeline(simulated()), tmp_path / name, **size)


def test_a_file_that_cannot_be_written_is_refused_in_a_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(image, "_browser", lambda _: "browser")
    monkeypatch.setattr(image, "_drawn", lambda *_: "data:image/svg+xml,")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"a path that can be written; got .*image.svg' \(No space left on device\)"):
        ex.write_image(ex.timeline(simulated()), tmp_path / "image.svg")


def test_what_is_no_figure_is_refused(tmp_path):
    with pytest.raises(InputError, match="an image shows a plotly figure; got Trace"):
        ex.write_image(simulated(), tmp_path / "image.png")


def test_without_a_browser_it_is_said_what_would_do():
    with pytest.raises(
        InputError, match=r"drawn by Chrome or Chromium; found none of .*; install one, or .*write_html"
    ):
        image._browser(lambda _: None)
