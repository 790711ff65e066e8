"""The Memory place in real JupyterLab: a click on the chart, and keys on its peak, list who holds the memory."""

from __future__ import annotations

from tests.browser.conftest import write_notebook
from tests.browser.lab import Lab

_OPEN = "import explorer as ex\nex.explore(run_on_change=False, activation_bytes=6e9, memory_limit=20e9)"


def test_clicks_and_keys_list_who_holds_the_memory(lab: Lab) -> None:
    write_notebook(lab.folder, "memory.ipynb", [_OPEN])
    opened = lab.open("memory.ipynb")
    opened.run_cell(0)
    opened.await_painted(1)
    page = opened.page
    page.locator(".pipeline-places button").filter(has_text="Memory").first.click()
    chart = page.locator(".pipeline-memory svg")
    chart.wait_for()
    page.locator("caption", has_text="Who holds the memory of rank 0 at its peak").wait_for()
    assert page.locator(".pipeline-memory .limit").count() == 1

    chart.click(position={"x": 80, "y": 200})  # where F0 runs alone
    page.locator("caption", has_text="Who holds the memory of rank 0 at").filter(has_not_text="its peak").wait_for()
    page.locator(".pipeline-memory .peak").focus()
    page.keyboard.press("Enter")
    page.locator("caption", has_text="at its peak").wait_for()
    assert page.evaluate("document.activeElement.classList.contains('peak')")  # redrawn, it keeps the keys
    assert opened.complaints == []


def test_half_a_screen_holds_what_places_are_worked_with(lab: Lab) -> None:
    write_notebook(lab.folder, "half.ipynb", [_OPEN])
    opened = lab.open("half.ipynb", width=640)
    opened.run_cell(0)
    opened.await_painted(1)
    for place, ends in (("Compare", "button:has-text('Show it above')"), ("Memory", "button:has-text('At the peak')")):
        opened.page.locator(".pipeline-places button").filter(has_text=place).first.click()
        button = opened.page.locator(f".pipeline-places {ends}")
        button.wait_for()
        box, around = button.bounding_box(), opened.page.locator(".pipeline-places").bounding_box()
        assert box
        assert around
        assert box["x"] + box["width"] <= around["x"] + around["width"]
        assert button.evaluate("one => one.scrollWidth <= one.clientWidth")  # its words are not cut off
