"""A million bars in a real browser: first paint, pan and zoom: pytest -m benchmark tests/benchmarks/test_million.py"""

from __future__ import annotations

import threading

import pytest

import explorer as ex
from explorer.widgets.page import picture_page
from explorer.widgets.picture import Frame, Picture

# marks when the columns are there, and when they have been painted
_WATCH = """
new MutationObserver((_, observer) => { observer.disconnect(); performance.mark("painted"); })
  .observe(document.getElementById("picture"), { attributes: true, attributeFilter: ["data-painted-seq"] });
performance.mark("read");
"""
# 60 steps in, 60 to the side, 60 out, one for each frame of the screen
_MOVE = """async () => {
  const canvas = document.querySelector('.pipeline-canvas'), frames = [];
  canvas.focus();
  const { left, top } = canvas.getBoundingClientRect();
  let last = performance.now();
  for (let n = 0; n < 180; n++) {
    const [deltaX, deltaY] = n < 60 ? [0, -40] : n < 120 ? [60, 0] : [0, 40];
    const place = { clientX: left + 500, clientY: top + 90, ctrlKey: true, cancelable: true };
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaX, deltaY, ...place }));
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames;
}"""


@pytest.mark.benchmark
def test_a_million_bars_are_painted_within_a_second_and_move_at_thirty_frames(browser, table, tmp_path) -> None:
    n_ranks, n_micro_batches = 64, 8192
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches))
    picture = Picture(threading.RLock())
    picture.show(Frame(trace, None, "a million", trace.makespan))
    page_text = picture_page(picture.timeline)
    picture.close()
    begin = 'render({ model, el: document.getElementById("picture")'
    assert begin in page_text
    file = tmp_path / "million.html"
    file.write_text(page_text.replace(begin, _WATCH + begin), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 700})
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelector('.pipeline-timeline')?.dataset.paintedSeq")
    first = page.evaluate("performance.measure('first', 'read', 'painted').duration")
    drawn = int(page.evaluate("document.querySelector('.pipeline-timeline').dataset.barsDrawn"))
    frames = sorted(page.evaluate(_MOVE))
    page.close()
    median, slow = frames[len(frames) // 2], frames[int(len(frames) * 0.95)]
    table(
        f"{drawn:,} bars",
        {"first paint ms": first, "frames a second": 1000 / median, "slowest of 20, ms": slow},
    )
    assert drawn == 2 * n_ranks * n_micro_batches
    assert first <= 1000
    assert 1000 / median >= 30
