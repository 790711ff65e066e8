"""The picture alone, as a saved page in a browser: keys, search, selection, overview, idle time, files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.widgets.gaps import Gaps
from tests.browser.shown import COSTS, simulated


def test_arrows_walk_from_bar_to_bar(show):
    shown = show(simulated())
    assert shown.keys("ArrowDown").startswith("F  forward, rank 0 · stage 0 · micro-batch 0, start 0 ms, duration 1 ms")
    assert "rank 0 · stage 0 · micro-batch 1" in shown.keys("ArrowRight")
    assert "rank 1 · stage 1 · micro-batch 0" in shown.keys("ArrowDown")
    assert "rank 0 · stage 0 · micro-batch 1" in shown.keys("ArrowUp")
    assert "B  backward, rank 0 · stage 0 · micro-batch 0" in shown.keys("ArrowRight", "ArrowRight", "ArrowRight")
    shown.keys("Enter")
    assert "duration 2 ms" in shown.page.locator(".pipeline-card").inner_text()
    shown.keys("Escape")
    assert not shown.page.locator(".pipeline-card").is_visible()
    assert shown.keys("Escape") == "nothing selected"
    assert shown.complaints == []


def test_n_goes_from_one_idle_interval_to_the_next(show):
    shown = show(simulated())
    assert shown.keys("n").startswith("idle on rank 0 for 6 ms")  # (P − 1)(F + B) = 9 ms of fill and drain,
    card = shown.page.locator(".pipeline-card")
    assert card.inner_text() == "idle on rank 0 for 6 ms"
    assert shown.keys("n").startswith("idle on rank 0 for 1 ms")  # a millisecond before each of the last three B
    assert card.inner_text() == "idle on rank 0 for 1 ms"
    assert shown.keys("N").startswith("idle on rank 0 for 6 ms")
    shown.keys("Enter")
    assert not card.is_visible()
    start, end = shown.range()
    shown.keys("z")
    assert shown.range() == pytest.approx((3.7, 10.3))
    shown.keys("f")
    assert shown.range() == pytest.approx((start, end))
    assert shown.complaints == []


def test_n_passes_over_what_rounding_leaves_between_two_bars(show):
    trace = simulated()
    start, end = trace.events.start.copy(), trace.events.end.copy()
    for rank in range(4):  # the bars of each stand end to end, at places that no power of ten makes whole
        rows = np.flatnonzero(trace.events.rank == rank)
        end[rows] = np.cumsum(np.random.default_rng(rank).uniform(1e-3, 1.01e-3, len(rows)))
        start[rows] = np.concatenate([[0.0], end[rows][:-1]])
    shown = show(replace(trace, events=replace(trace.events, start=start, end=end), clock="real"))
    spoken = shown.keys("n")
    assert not spoken or float(spoken.split(" for ")[1].split(" ms")[0]) > 1e-3


def test_question_mark_lists_the_keys(show):
    shown = show(simulated())
    shown.keys("?")
    assert "next, previous idle interval" in shown.page.locator(".pipeline-help").inner_text()
    boxes = [one.bounding_box() for one in shown.page.locator(".pipeline-help span").all()]
    assert all(key["x"] + key["width"] < words["x"] for key, words in zip(boxes[::2], boxes[1::2], strict=True))
    shown.keys("Escape")
    assert not shown.page.locator(".pipeline-help").is_visible()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("m5", 8),
        ("5", 8),
        ("micro-batch 5", 8),
        ("F3", 4),
        ("f3", 4),
        ("2B7", 1),
        ("stage 2 B7", 1),
        ("rank 1 B", 8),
        ("m99", 0),
    ],
)
def test_search_finds(show, query, found):
    shown = show(simulated())
    shown.page.locator(".pipeline-search").fill(query)
    assert shown.page.locator(".pipeline-count").inner_text() == f"{found} found"
    assert shown.complaints == []


def test_search_follows_a_micro_batch_through_the_ranks(show):
    shown = show(simulated())
    field = shown.page.locator(".pipeline-search")
    field.fill("m2")
    told = []
    for _ in range(9):
        field.press("Enter")
        told.append(str(shown.page.locator(".pipeline-spoken").text_content()))
    assert [text[0] + text.split("rank ")[1][0] for text in told] == [
        "F0",
        "F1",
        "F2",
        "F3",
        "B3",
        "B2",
        "B1",
        "B0",
        "F0",
    ]
    assert shown.page.locator(".pipeline-count").inner_text() == "1 of 8"
    field.fill("what?")
    assert "try m5, F3" in shown.page.locator(".pipeline-count").inner_text()
    field.press("Escape")
    assert field.input_value() == ""
    assert shown.complaints == []


def test_the_overview_moves_and_resizes_what_is_shown(show):
    shown = show(simulated())
    whole = shown.range()
    box = shown.page.locator(".pipeline-overview").bounding_box()

    def drag(begin: float, end: float) -> tuple[float, float]:
        mouse, y = shown.page.mouse, box["y"] + 17
        mouse.move(box["x"] + begin * box["width"], y)
        mouse.down()
        mouse.move(box["x"] + end * box["width"], y, steps=4)
        mouse.up()
        return tuple(time / whole[1] for time in shown.range())

    assert drag(0.25, 0.5) == pytest.approx((0.25, 0.5), abs=0.005)  # on the whole: chooses
    assert drag(0.4, 0.6) == pytest.approx((0.45, 0.7), abs=0.005)  # within: moves
    assert drag(0.7, 0.9) == pytest.approx((0.45, 0.9), abs=0.005)  # at its end: resizes
    shown.page.locator(".pipeline-overview").dblclick(position={"x": 5, "y": 5})
    assert shown.range() == whole
    assert shown.complaints == []


def test_click_selects_a_bar_and_shift_drag_a_stretch_on_some_ranks(show):
    shown = show(simulated())
    canvas = shown.page.locator(".pipeline-canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": 64 + 10, "y": 30})
    assert "micro-batch 0" in str(shown.page.locator(".pipeline-spoken").text_content())
    shown.page.keyboard.down("Shift")
    shown.page.mouse.move(box["x"] + 64, box["y"] + 80)  # rank 1
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 400, box["y"] + 160, steps=4)  # rank 2
    shown.page.mouse.up()
    shown.page.keyboard.up("Shift")
    assert str(shown.page.locator(".pipeline-spoken").text_content()).startswith(
        "selected ranks 1 to 2, from 0 ms to 9."
    )
    assert shown.complaints == []


def made_gaps(trace: ex.Trace) -> Gaps:
    return Gaps(
        rank=np.array([1, 0, 0]),
        start=np.array([0.0, 0.004, 0.014]),
        end=np.array([0.001, 0.010, 0.015]),
        cause=np.array([0, 0, 2]),
        causes=("fill", "drain", "latency"),
        sentence=lambda row: ("rank 0 has not sent yet", "waits for <i>B0</i>", "a message is under way")[row],
    )


def test_idle_time_is_coloured_and_says_why(show):
    trace = simulated()
    shown = show(trace, made_gaps(trace))
    assert shown.data("gapsDrawn") == "3"
    x = 64 + 7 / shown.range()[1] * (1280 - 16 - 64 - 12)
    shown.page.locator(".pipeline-canvas").hover(position={"x": x, "y": 40})
    tip = shown.page.locator(".pipeline-tooltip").locator("visible=true").inner_text()
    assert tip == "f  idle: the pipeline fills\nrank 0 · 6 ms from 4 ms\nwaits for <i>B0</i>"
    shown.page.get_by_role("button", name="l  idle: latency").click()
    assert shown.data("gapsDrawn") == "2"
    assert "waits for <i>B0</i>" in shown.keys("n")
    assert shown.complaints == []


@pytest.mark.parametrize(
    ("name", "n_chunks", "n_darker"), [("1f1b", 1, 0), ("interleaved_1f1b", 3, 2), ("chimera", 1, 1)]
)
def test_a_ranks_further_stages_are_darker(show, name, n_chunks, n_darker):
    # else two bars of a rank bear the same words and colour
    program = ex.schedule(name, n_ranks=2, n_micro_batches=4, n_chunks=n_chunks)
    trace = ex.simulate(program, COSTS)
    shown = show(trace)
    events, whole = trace.events, trace.makespan * 1.005
    first = [one for one in range(len(events)) if events.rank[one] == 0 and events.kind[one] == ex.Kind.F]
    colors: dict[int, list[int]] = {}
    for one in first:
        at = (events.start[one] + 0.1 * (events.end[one] - events.start[one])) / whole
        colors[int(events.stage[one])] = shown.page.evaluate(
            """at => { const canvas = document.querySelector('.pipeline-canvas');
              const left = 64, right = 8, x = left + at * (canvas.width - left - right);
              return [...canvas.getContext('2d').getImageData(x, 20, 1, 1).data].slice(0, 3); }""",
            at,
        )
    by_light = sorted(colors.items(), key=lambda item: -sum(item[1]))
    assert [stage for stage, _ in by_light] == sorted(colors)
    assert len({tuple(color) for color in colors.values()}) == n_darker + 1
    assert ("Darker bars" in shown.page.locator(".pipeline-note").inner_text()) == bool(n_darker)


def test_below_pixel_size_stacks_are_drawn_and_a_zoom_shows_bars(show):
    shown = show(simulated(n_ranks=8, n_micro_batches=2048))
    assert (shown.data("mode"), shown.data("barsDrawn")) == ("coverage", str(2 * 8 * 2048))
    shown.page.locator(".pipeline-search").fill("4F1000")
    shown.page.locator(".pipeline-search").press("Enter")
    assert shown.data("mode") == "rectangles"
    start, end = shown.range()
    assert end - start < 100
    assert shown.complaints == []


def test_a_column_of_pixels_is_filled_by_as_much_as_it_is_busy(show):
    # the lane's share of F and B in the steady state is 1/3 and 2/3, from top to bottom
    shown = show(simulated(n_ranks=2, n_micro_batches=4096))
    column = """() => { const canvas = document.querySelector('.pipeline-canvas');
      const pixels = canvas.getContext('2d').getImageData(600, 0, 1, 140).data;
      return [...Array(140).keys()].map(y => [...pixels.slice(4 * y, 4 * y + 3)].join()); }"""
    colors = shown.page.evaluate(column)
    blue, orange = colors.count("10,110,189"), colors.count("201,79,10")
    assert blue / (blue + orange) == pytest.approx(1 / 3, abs=0.02)
    assert blue + orange == pytest.approx(0.8 * 134, abs=4)  # of the lane's height


def test_a_line_with_nearly_as_many_steps_as_pixels_covers_all_levels_it_passes_through(show):
    # a message takes as long as a forward: rank 1 waits for every second one with nothing in flight, rank 0 has two
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4096)
    shown = show(ex.simulate(program, replace(COSTS, latency=0.001)))
    rows = """color => { const canvas = document.querySelector('.pipeline-canvas');
      const pixels = canvas.getContext('2d').getImageData(600, 289, 8, 115).data;
      const isOf = i => [...pixels.slice(4 * i, 4 * i + 3)].join() === color;
      return [...Array(920).keys()].filter(isOf).map(i => i >> 3); }"""
    blue, orange = (shown.page.evaluate(rows, color) for color in ("10,110,189", "201,79,10"))
    a_level = 115 / 2.16  # pixels: the axis ends 8 % above the highest
    assert (blue[0], blue[-1]) == pytest.approx((0.16 * a_level, 0.16 * a_level), abs=2)
    assert (orange[0], orange[-1]) == pytest.approx((1.16 * a_level, 2.16 * a_level), abs=2)
    assert set(orange) == set(range(orange[0], orange[-1] + 1))
    assert shown.complaints == []


def test_png_and_svg_are_saved(show, tmp_path):
    shown = show(simulated())
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b'<svg xmlns="http://www.w3.org/2000/svg"')):
        shown.page.get_by_role("button", name="Save the picture").click()
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name=f"Save as {kind}").click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        assert file.read_bytes().startswith(begins)
    text = (tmp_path / "pipeline.svg").read_text(encoding="utf-8")
    assert "<title>a &lt;b&gt;label&lt;/b&gt;</title>" in text
    assert ">B7</text>" in text
    assert json.loads(shown.page.evaluate("JSON.stringify([...document.querySelectorAll('img')].length)")) == 0
    assert shown.complaints == []
