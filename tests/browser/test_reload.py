"""What the reader has chosen stays over a reload of the page: zoom, search, selection, legends, the place below."""

from __future__ import annotations

from tests.browser.fixtures import write_notebook
from tests.browser.lab import Lab, Page

_KNOWS = """import time
end = time.monotonic() + 20
picture = app.timeline
while not ({condition}) and time.monotonic() < end:
    time.sleep(0.05)
print("the kernel knows:", bool({condition}))"""
_BAR = (
    "picture.selected.get('row') is not None and picture.search == 'F2' and len(picture.zoom) == 2 and picture.hidden"
)
_STRETCH = "picture.selected.get('ranks') == [1, 2] and app.run is not None"


def opened(lab: Lab, condition: str) -> Page:
    cell = "import explorer as ex\napp = ex.explore(run_on_change=False, backend='kernel')\napp"
    write_notebook(lab.folder, "reload.ipynb", [cell, _KNOWS.format(condition=condition)])
    app = lab.open("reload.ipynb")
    app.run_cell(0)
    app.await_painted(1)
    return app


def reload(app: Page) -> None:
    """Once the kernel knows, to which the page tells a little later what was done."""
    app.run_cell(1)
    app.page.locator(".jp-OutputArea-output").filter(has_text="the kernel knows: True").wait_for()
    app.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    app.page.reload()
    app.await_kernel()
    app.await_data("d.paintedSeq")


def place(app: Page, name: str):
    return app.page.locator(".pipeline-places").get_by_role("button", name=name, exact=True).first


def details(app: Page) -> str:
    """Of the selected bar."""
    app.page.locator(".pipeline-canvas").focus()
    app.page.keyboard.press("Enter")
    card = app.page.locator(".pipeline-card")
    card.wait_for(state="visible")
    return str(card.inner_text())


def test_zoom_search_selection_legend_and_place_stay(lab: Lab) -> None:
    app = opened(lab, _BAR)
    place(app, "Why").click()
    app.page.locator(".pipeline-why").wait_for()
    app.page.get_by_role("button", name="B  backward").click()
    field = app.page.locator(".pipeline-search")
    field.fill("F2")
    for _ in range(3):  # F2 of rank 0, 1, then 2
        field.press("Enter")
    app.page.locator(".pipeline-canvas").focus()
    for _ in range(3):
        app.page.keyboard.press("+")
    told = details(app)
    assert "rank 2 · stage 2 · micro-batch 2" in told
    app.await_data("Number(d.barsDrawn) < 32")
    zoomed = app.data("range")

    reload(app)
    assert app.data("range") == zoomed
    assert field.input_value() == "F2"
    assert app.page.locator(".pipeline-count").inner_text() == "4 found"
    assert app.page.get_by_role("button", name="B  backward").get_attribute("aria-pressed") == "false"
    assert details(app) == told
    app.page.locator(".pipeline-why").wait_for()
    assert "mod-active" in place(app, "Why").get_attribute("class")


def test_a_run_a_stretch_and_the_causes_of_idle_time_stay(lab: Lab) -> None:
    app = opened(lab, _STRETCH)
    app.press("Run")
    app.page.wait_for_function("document.querySelector('.pipeline-status').innerText.startsWith('Ran')", timeout=60_000)
    app.page.get_by_role("button", name="Colour idle time by its cause").click()
    app.await_data("Number(d.gapsDrawn) > 0")
    app.page.locator(".pipeline-canvas").scroll_into_view_if_needed()
    box = app.page.locator(".pipeline-canvas").bounding_box()
    mouse = app.page.mouse
    app.page.keyboard.down("Shift")
    mouse.move(box["x"] + 300, box["y"] + 110)  # rank 1
    mouse.down()
    mouse.move(box["x"] + 500, box["y"] + 180, steps=4)  # rank 2
    mouse.up()
    app.page.keyboard.up("Shift")
    place(app, "Code").click()
    measured, gaps = app.data("measuredDrawn"), app.data("gapsDrawn")
    plain = app.page.evaluate(_PIXEL)

    reload(app)
    app.await_data(f"d.measuredDrawn === '{measured}' && d.gapsDrawn === '{gaps}'")
    assert app.page.evaluate(_PIXEL) == plain  # within the stretch, which is shaded
    assert app.page.get_by_role("button", name="Colour idle time by its cause").get_attribute("aria-pressed") == "true"
    app.page.locator(".pipeline-code").wait_for()
    app.page.locator(".pipeline-canvas").focus()
    app.page.keyboard.press("Escape")
    told = app.page.locator(".pipeline-spoken")
    told.filter(has_text="nothing selected").wait_for(state="attached")  # for there was something
    assert app.complaints == []


_PIXEL = """() => [...document.querySelector('.pipeline-canvas').getContext('2d').getImageData(310, 100, 150, 90).data]
  .reduce((sum, value, n) => (sum * 31 + value * (n % 97 + 1)) % 1000003, 7)"""
