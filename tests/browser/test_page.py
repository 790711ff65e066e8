"""A figure as a written page in a browser: what is told of the bar under the pointer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import explorer as ex

# from the first micro-batch's backward on, rank 1 runs an F of stage 2 with a B of stage 1, or the other way round
TRACE = ex.simulate(ex.schedule("dualpipev", n_ranks=2, n_micro_batches=8), ex.Costs(latency=0.25))
POINTED = "document.querySelector('.hoverlayer .hovertext')?.textContent ?? ''"


@pytest.fixture
def tell(browser: Any, tmp_path: Path):
    """Opens the timeline; gives what is told at a time and height in lanes, and what the console said."""
    context = browser.new_context(viewport={"width": 1280, "height": 500})
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.goto(ex.write_html(ex.timeline(TRACE), tmp_path / "page.html").as_uri())
    page.wait_for_selector(".barlayer .point path", state="attached")

    def told(time: float, lane: float) -> str:
        place = """([time, lane]) => { const { xaxis, yaxis } = document.querySelector('.js-plotly-plot')._fullLayout;
          return [xaxis._offset + xaxis.l2p(time), yaxis._offset + yaxis.l2p(lane)]; }"""
        box = page.locator(".js-plotly-plot").bounding_box()
        x, y = page.evaluate(place, [time, lane])
        page.mouse.move(0, 0)
        page.wait_for_function(f"{POINTED} === ''")
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_function(f"{POINTED} !== ''")
        return str(page.evaluate(POINTED))

    yield told, complaints
    context.close()


def test_each_of_two_bars_that_run_together_tells_of_itself(tell: tuple[Callable[[float, float], str], list[str]]):
    told, complaints = tell
    events = TRACE.to_frame()
    slots = events[events.stream == "compute"].groupby(["rank", "slot"])
    rows = next(slot for _, slot in slots if len(slot) == 2)
    for (_, row), aside in zip(rows.sort_values("kind").iterrows(), (-0.2, 0.2), strict=True):
        text = told((row.start + row.end) / 2, row["rank"] + aside)
        assert text.startswith({"F": "F forward", "B": "B backward"}[row.kind])
        assert f"stage {row.stage}, micro-batch {row.micro_batch}start {row.start:.6g}takes 3waited" in text
    assert complaints == []


def test_a_message_tells_of_itself_below_its_lane(tell: tuple[Callable[[float, float], str], list[str]]):
    told, complaints = tell
    events = TRACE.to_frame()
    row = events[events.kind == "SEND_F"].iloc[0]
    text = told((row.start + row.end) / 2, row["rank"] + 0.44)
    assert f"activation sentstage {row.stage}, micro-batch {row.micro_batch}start {row.start:.6g}takes 0.25" in text
    assert complaints == []
