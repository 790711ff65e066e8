"""The first picture, and frames of a run, in a real browser: pytest -m benchmark tests/benchmarks/test_app.py -s"""

from __future__ import annotations

import statistics
import time

import pytest

from tests.browser.fixtures import write_notebook
from tests.browser.lab import Lab


@pytest.mark.benchmark
def test_first_picture(lab: Lab) -> None:
    seconds = []
    for turn in range(3):
        write_notebook(lab.folder, f"first{turn}.ipynb", ["import explorer as ex\nex.explore(run_on_change=False)"])
        page = lab.open(f"first{turn}.ipynb")
        page.page.wait_for_timeout(2000)  # JupyterLab itself has come to rest
        begin = time.monotonic()
        page.run_cell(0)
        page.await_painted(1)
        seconds.append(time.monotonic() - begin)
        assert page.data("barsDrawn") == "64"
    print(f"\nfrom the cell to the first picture: {', '.join(f'{one:.1f}' for one in seconds)} s   limit 3 s")
    assert statistics.median(seconds) < 3


@pytest.mark.benchmark
def test_frames_of_a_run(lab: Lab) -> None:
    cell = "import explorer as ex\nex.explore(n_steps=300, run_on_change=False)"
    write_notebook(lab.folder, "frames.ipynb", [cell])
    page = lab.open("frames.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.press("Run")
    page.await_data("Number(d.measuredDrawn) > 0", timeout=60_000)
    first, begin = int(page.data("paintedSeq")), time.monotonic()
    page.page.wait_for_timeout(5000)
    frames, seconds = int(page.data("paintedSeq")) - first, time.monotonic() - begin
    drawn = int(page.data("measuredDrawn"))
    assert page.status().startswith("Running")
    page.press("Stop")
    print(f"\nframes of a run: {frames / seconds:.1f} a second, {drawn:,} measured bars at its end   limit 10")
    assert frames / seconds >= 10
