"""Crosses on the picture where a run was given a fault, and what they say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import explorer as ex
from explorer.core import Mark
from tests.browser.shown import COSTS, simulated

LEFT, TOP = 64, 7  # pixels from the canvas's corner to the lanes'


def marked(*marks: Mark) -> ex.Trace:
    return replace(simulated(), marks=marks)


def place_of(shown, mark):
    """Where the mark is on the canvas: four lanes in 0.7 of what the margins leave of its 440 pixels."""
    lane = round((440 - 7 - 36 - 14) * 0.7) / 4
    width = shown.page.locator(".pipeline-canvas").bounding_box()["width"] - LEFT - 12
    return {"x": LEFT + mark.time * 1e3 / shown.range()[1] * width, "y": TOP + (mark.rank + 0.5) * lane}


def test_a_mark_is_drawn_and_says_its_words(show):
    late = Mark(0, 1, 0.0015, "delay <b>action=F0</b>")  # within F0 of rank 1, from 1 to 2 ms
    idle = Mark(0, 0, 0.0070, "kill rank=0")  # while rank 0 waits for B0, from 4 to 10 ms
    shown = show(marked(late, idle))
    assert shown.data("marksDrawn") == "2"
    tip = shown.page.locator(".pipeline-tooltip").locator("visible=true")
    for mark, words in ((idle, "✕  kill rank=0\nrank 0 · at 7 ms"), (late, "✕  delay <b>action=F0</b>")):
        shown.page.locator(".pipeline-canvas").hover(position=place_of(shown, mark))
        assert words in tip.inner_text()
    assert "rank 1 · stage 1 · micro-batch 0" in tip.inner_text()  # the bar's own words stay
    assert "✕  delay" in shown.keys("ArrowDown", "ArrowDown")  # and by keyboard: F0 of rank 0, then of rank 1
    assert shown.complaints == []


def test_marks_are_hidden_by_their_legend_and_out_of_sight_by_a_zoom(show):
    shown = show(marked(Mark(0, 0, 0.0001, "slow rank=0 factor=2"), Mark(0, 3, 0.020, "kill rank=3")))
    legend = shown.page.get_by_role("button", name="fault")
    legend.click()
    assert shown.data("marksDrawn") == "0"
    assert "✕" not in shown.keys("ArrowDown")
    legend.click()
    assert "✕  slow rank=0 factor=2" in shown.keys("Escape", "ArrowDown")
    shown.keys("z")  # F0 of rank 0 alone
    assert shown.data("marksDrawn") == "1"
    assert shown.complaints == []


def test_a_picture_without_marks_has_no_legend_of_them(show):
    assert show(simulated()).page.get_by_role("button", name="fault").count() == 0


def test_marks_are_saved_with_the_picture(show):
    mark = Mark(0, 2, 0.020, "kill rank=2")
    shown = show(marked(mark))
    shown.page.get_by_role("button", name="Save the picture").click()
    with shown.page.expect_download() as download:
        shown.page.get_by_role("button", name="Save as SVG").click()
    text = download.value.path().read_text(encoding="utf-8")
    left, size = place_of(shown, mark)["x"] - LEFT, 6  # half of a cross
    beginnings = re.findall(r'd="M([\d.]+) [\d.]+L[\d.]+ [\d.]+M\1 [\d.]+L', text)  # its lines begin at one side
    assert [float(one) for one in beginnings if float(one) > 300] == pytest.approx(
        [left - size - 1.2, left - size], abs=0.02
    )
    assert ">fault</text>" in text
    assert shown.complaints == []


# ── bars that share their lane ───────────────────────────────────────────────────────────────────────────────────

_COLUMN = """x => { const canvas = document.querySelector('.pipeline-canvas');
  const pixels = canvas.getContext('2d').getImageData(x, 0, 1, 300).data;
  return [...Array(300).keys()].map(y => [...pixels.slice(4 * y, 4 * y + 3)].join()); }"""
_BLUE, _ORANGE = (10, 110, 189), (201, 79, 10)  # F and B
_DARKER = 1 - 0.42  # as a rank's stages of the other direction are


def overlapped(n_micro_batches: int) -> ex.Trace:
    """DualPipe on two ranks, which runs an F and a B as one for most of the time."""
    return ex.simulate(ex.schedule("dualpipe", n_ranks=2, n_micro_batches=n_micro_batches), COSTS)


def heights(shown, x):
    """Pixels of F and of B in a column."""
    colors = [tuple(map(int, color.split(","))) for color in shown.page.evaluate(_COLUMN, x)]
    return tuple(sum(is_color(one, color) for one in colors) for color in (_BLUE, _ORANGE))


def is_color(one, color):
    """Whether a pixel has it, or has it darker."""
    return any(max(abs(a - b * by) for a, b in zip(one, color, strict=True)) <= 1.5 for by in (1, _DARKER))


def middle_of_overlap(shown, trace):
    """A column in the first tenth of a bar that shares its lane on both ranks: beside its letters."""
    frame = trace.to_frame()
    first = frame[frame.duplicated(["rank", "start"], keep=False)].start.iloc[len(frame) // 3]
    width = shown.page.locator(".pipeline-canvas").bounding_box()["width"] - LEFT - 12
    return int(LEFT + (first + 0.0003) * 1e3 / shown.range()[1] * width)


def test_what_is_left_of_an_overlap_has_the_whole_lane(show):
    trace = overlapped(8)
    shown = show(trace)
    x, lane = middle_of_overlap(shown, trace), 0.8 * round(383 * 0.7)
    assert heights(shown, x) == pytest.approx((lane / 2, lane / 2), abs=4)  # of both ranks together
    shown.page.get_by_role("button", name="F  forward").click()
    assert shown.data("mode") == "rectangles"
    assert heights(shown, x) == pytest.approx((0, lane), abs=4)
    canvas, tip = (
        shown.page.locator(".pipeline-canvas"),
        shown.page.locator(".pipeline-tooltip").locator("visible=true"),
    )
    told = []
    for share in (0.25, 0.75):  # above and below the middle of rank 0
        canvas.hover(position={"x": x, "y": TOP + share * lane / 1.6})
        told.append(tip.inner_text())
    assert told[0].startswith("B  backward")
    assert told[0] == told[1]
    assert shown.complaints == []


def test_below_pixel_size_an_overlap_shows_as_much_idle_time_as_there_is(show):
    trace = overlapped(3000)
    shown = show(trace)
    assert shown.data("mode") == "coverage"
    lane = 0.8 * round(383 * 0.7)
    forward, backward = heights(shown, 600)
    assert forward == pytest.approx(lane / 2, abs=4)
    assert backward == pytest.approx(lane / 2, abs=4)
    shown.page.get_by_role("button", name="F  forward").click()
    shown.data("mode")
    assert heights(shown, 600) == pytest.approx((0, lane), abs=4)
    assert shown.complaints == []
