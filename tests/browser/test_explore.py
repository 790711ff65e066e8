"""The app in real JupyterLab, by hand and eye of a browser."""

from __future__ import annotations

import explorer as ex
from tests.browser.conftest import write_notebook
from tests.browser.lab import Lab, Page


def test_app_predicts_drags_runs_and_survives_a_reload(app: Page) -> None:
    assert app.data("barsDrawn") == "64"  # 4 ranks × 8 micro-batches × F and B
    assert "Predicted from the costs set here" in app.status()

    app.page.get_by_label("Run on change").uncheck()
    app.drag("Micro-batches", 40)
    app.await_data("Number(d.barsDrawn) > 64 && d.measuredDrawn === '0'")
    app.enter("Micro-batches", 8)
    app.await_data("d.barsDrawn === '64'")

    app.press("Run")
    app.await_data("Number(d.measuredDrawn) > 0", timeout=60_000)
    assert "virtual ranks: measured operations, modelled placement and links" in app.status()
    app.page.wait_for_function("document.querySelector('.pipeline-status').innerText.startsWith('Ran')")
    measured = str(3 * (64 + 4))  # three steps, each with an optimizer update a stage
    app.await_data(f"d.measuredDrawn === '{measured}'")

    app.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    app.page.reload()
    app.await_kernel()
    app.await_data(f"d.measuredDrawn === '{measured}'")

    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        app.theme(theme)
    assert app.complaints == []


def test_illegal_number_is_explained_and_set_right_by_its_button(app: Page) -> None:
    app.page.get_by_label("Run on change").uncheck()
    app.choose("Schedule", "Interleaved 1F1B")
    app.await_data("d.barsDrawn === '128'")  # two chunks came with it
    app.enter("Micro-batches", 10)
    app.await_data("d.stale === 'true'")
    field = app.field("Micro-batches")
    assert "multiple of Ranks" in field.locator(".pipeline-explanation").inner_text()
    field.get_by_role("button", name="Use 8").click()
    app.await_data("d.stale === 'false'")
    assert app.complaints == []


def test_each_place_below_the_picture_shows_what_it_promises(app: Page) -> None:
    shows = {"Code": ".pipeline-code", "Why": ".pipeline-page", "Sweep": ".pipeline-sweeps"}
    for name, inside in shows.items():
        app.page.locator(".pipeline-places").get_by_role("button", name=name, exact=True).first.click()
        app.page.locator(inside).wait_for(state="visible")
        for other in shows.values():
            if other != inside:
                app.page.locator(other).wait_for(state="hidden")
    assert app.complaints == []


def test_stop_ends_a_run_while_the_kernel_answers(lab: Lab) -> None:
    cells = ["import explorer as ex\nex.explore(n_steps=200, run_on_change=False, backend='kernel')", "1+1"]
    write_notebook(lab.folder, "stop.ipynb", cells)
    page = lab.open("stop.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.press("Run")
    page.await_data("Number(d.measuredDrawn) > 0", timeout=60_000)
    page.run_cell(1)
    page.page.locator(".jp-Notebook-cell").nth(1).locator(".jp-OutputArea-output").filter(has_text="2").wait_for(
        timeout=3000
    )
    page.press("Stop")
    script = "document.querySelector('.pipeline-status').innerText.startsWith('Stopped')"
    page.page.wait_for_function(script, timeout=2000)
    assert page.complaints == []


def test_text_of_users_never_becomes_html(lab: Lab) -> None:
    cell = (
        "import explorer as ex\n"
        "evil = type('<img src=x onerror=alert(1)>', (), {})()\n"
        "app = ex.explore(evil, batch=None, loss=None)\n"
        "app.panel.fail('<img src=x onerror=alert(1)>')\napp"
    )
    write_notebook(lab.folder, "evil.ipynb", [cell])
    page = lab.open("evil.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    assert page.page.locator(".pipeline-explorer img").count() == 0
    assert "<img src=x" in page.page.locator(".pipeline-run .pipeline-explanation").inner_text()


_NEXT_PAINT = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_KNOWS_ZOOM = """import time
end = time.monotonic() + 20
while not (app.timeline.zoom and app.timeline.zoom[1] - app.timeline.zoom[0] < 20) and time.monotonic() < end:
    time.sleep(0.05)
print("the kernel knows", len(app.timeline.zoom), "ends")"""


def test_a_zoom_stays_over_a_reload_and_ends_with_other_numbers(lab: Lab) -> None:
    cells = ["import explorer as ex\napp = ex.explore(run_on_change=False, backend='kernel')\napp", _KNOWS_ZOOM]
    write_notebook(lab.folder, "zoom.ipynb", cells)
    app = lab.open("zoom.ipynb")
    app.run_cell(0)
    app.await_painted(1)
    app.page.locator(".pipeline-canvas").focus()
    for _ in range(6):
        app.page.keyboard.press("+")
    app.await_data("Number(d.barsDrawn) > 0 && Number(d.barsDrawn) < 40")
    app.page.evaluate(_NEXT_PAINT)
    app.run_cell(1)  # the page tells the kernel a little later, and a reload before that forgets it
    app.page.locator(".jp-OutputArea-output").filter(has_text="the kernel knows 2 ends").wait_for()
    zoomed = app.data("barsDrawn")
    app.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    app.page.reload()
    app.await_kernel()
    app.await_data(f"d.barsDrawn === '{zoomed}'")

    app.page.locator(".pipeline-canvas").focus()
    app.page.keyboard.press("0")
    app.await_data("d.barsDrawn === '64'")
    app.page.keyboard.press("+")
    app.await_data("Number(d.barsDrawn) < 64")
    app.enter("Micro-batches", 4)
    app.await_data("d.barsDrawn === '32'")
    assert app.complaints == []


def test_a_double_click_shows_the_whole_of_the_newest_picture(app: Page) -> None:
    app.page.get_by_label("Run on change").uncheck()
    app.enter("Micro-batches", 32)
    app.await_data("d.barsDrawn === '256'")
    app.page.locator(".pipeline-canvas").focus()
    for _ in range(4):
        app.page.keyboard.press("+")
    app.await_data("Number(d.barsDrawn) < 200")
    app.page.locator(".pipeline-canvas").dblclick(position={"x": 200, "y": 60})
    app.await_data("d.barsDrawn === '256'")


def test_a_zoom_stays_while_a_run_streams(lab: Lab) -> None:
    cell = "import explorer as ex\nex.explore(n_steps=200, run_on_change=False, backend='kernel')"
    write_notebook(lab.folder, "stream.ipynb", [cell])
    page = lab.open("stream.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.press("Run")
    page.await_data("Number(d.measuredDrawn) > 0", timeout=60_000)
    page.page.locator(".pipeline-canvas").focus()
    for _ in range(6):
        page.page.keyboard.press("+")
    page.page.evaluate(_NEXT_PAINT)  # what the last key changed is painted with the next frame of the screen
    zoomed = page.data("range")
    seen = int(page.data("paintedSeq"))
    page.await_painted(seen + 8)
    assert page.data("range") == zoomed
    page.press("Stop")
    assert page.complaints == []


def test_the_pointer_says_what_is_under_it_and_moves_the_picture(app: Page) -> None:
    app.page.get_by_label("Run on change").uncheck()
    app.enter("Latency, ms", 2)
    app.await_data("Number(d.barsDrawn) > 64")  # messages too
    canvas = app.page.locator(".pipeline-canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": 64 + 4, "y": 30})
    tip = app.page.get_by_role("tooltip")
    tip.wait_for()
    said = tip.inner_text()
    assert "rank 0 · stage 0 · micro-batch 0" in said
    assert "duration 10 ms" in said
    assert "predicted" in said

    app.page.mouse.wheel(0, -300)  # not clicked: the page's
    whole = app.data("range")
    canvas.click(position={"x": 300, "y": 200})
    app.page.mouse.wheel(0, -300)
    app.await_data(f"d.range !== '{whole}'")
    start, end = (float(part) for part in app.data("range").split(","))
    assert end - start < float(whole.split(",")[1])
    x, y = box["x"] + 300, canvas.bounding_box()["y"] + 100
    app.page.mouse.move(x, y)
    app.page.mouse.down()
    app.page.mouse.move(x - 80, y, steps=4)
    app.page.mouse.up()
    app.await_data(f"Number(d.range.split(',')[0]) > {start}")
    app.page.get_by_role("button", name="Show all").click()
    app.await_data(f"d.range === '{whole}'")
    assert app.complaints == []


def test_a_legend_hides_and_a_theme_repaints(app: Page) -> None:
    app.page.get_by_label("Run on change").uncheck()
    app.page.get_by_role("button", name="F forward").click()
    app.await_data("d.barsDrawn === '32'")
    app.page.get_by_role("button", name="F forward").click()
    app.await_data("d.barsDrawn === '64'")
    ground = """() => { const canvas = document.querySelector('.pipeline-canvas');
      return [...canvas.getContext('2d').getImageData(canvas.width - 14, 10, 1, 1).data]; }"""
    light = app.page.evaluate(ground)
    app.theme("JupyterLab Dark")
    app.page.wait_for_function(f"() => String(({ground})()) !== '{','.join(map(str, light))}'")
    app.theme("JupyterLab Light")
    app.page.wait_for_function(f"() => String(({ground})()) === '{','.join(map(str, light))}'")


_SELECTED = """import time
end = time.monotonic() + 20
while app.selection["rank"].tolist() != [1] and time.monotonic() < end:
    time.sleep(0.05)
print("selected:", *(f"{row.kind}{row.micro_batch}@{row.rank}" for row in app.selection.itertuples()))"""


def test_selection_causes_and_files_reach_python_and_come_from_it(lab: Lab) -> None:
    cells = ["import explorer as ex\napp = ex.explore(run_on_change=False)\napp", _SELECTED]
    write_notebook(lab.folder, "chosen.ipynb", cells)
    app = lab.open("chosen.ipynb")
    app.run_cell(0)
    app.await_painted(1)
    app.page.locator(".pipeline-canvas").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):  # F0 and F1 of rank 0, then what rank 1 does meanwhile
        app.page.keyboard.press(key)
    told = app.page.locator(".pipeline-spoken")
    told.filter(has_text="rank 1 · stage 1 · micro-batch 0").wait_for(state="attached")
    app.run_cell(1)
    app.page.locator(".jp-OutputArea-output").filter(has_text="selected: F0@1").wait_for()

    app.page.get_by_role("button", name="Colour idle time by its cause").click()
    app.await_data("Number(d.gapsDrawn) > 0")
    app.page.get_by_role("button", name="f  idle: the pipeline fills").wait_for()
    app.enter("Micro-batches", 4)
    app.await_data("d.barsDrawn === '32' && Number(d.gapsDrawn) > 0")

    app.page.get_by_role("button", name="Save the picture").click()
    with app.page.expect_download() as download:
        app.page.get_by_role("button", name="Save as CSV").click()
    download.value.save_as(lab.folder / "saved.csv")
    assert len(ex.load(lab.folder / "saved.csv").events) == 4 * 4 * 2  # ranks, micro-batches, F and B
    assert app.complaints == []


_REACHING_OUT = """() => {
  const app = document.querySelector('.pipeline-explorer'), {left, right} = app.getBoundingClientRect();
  const cut = (one) => one !== app && (getComputedStyle(one).overflowX !== 'visible' || cut(one.parentElement));
  const reaches = (box) => box.width && box.height && (box.left < left - 1 || box.right > right + 1);
  return [...app.querySelectorAll('*')]
    .filter((part) => reaches(part.getBoundingClientRect()) && !cut(part.parentElement))
    .map((part) => `${part.tagName} ${part.className}`);
}"""


def test_nothing_reaches_out_of_the_app_on_half_a_screen(lab: Lab) -> None:
    write_notebook(lab.folder, "half.ipynb", ["import explorer as ex\napp = ex.explore(backend='kernel')\napp"])
    page = lab.open("half.ipynb", width=640)
    page.run_cell(0)
    page.await_painted(1)
    for name in ("More costs", "Memory", "Faults"):
        page.press(name)
        assert page.page.evaluate(_REACHING_OUT) == []
    for name in ("Code", "Why", "Memory", "Compare", "Sweep"):
        page.page.locator(".pipeline-places").get_by_role("button", name=name, exact=True).first.click()
        page.page.wait_for_timeout(300)  # for the browser to lay out what comes
        assert page.page.evaluate(_REACHING_OUT) == [], name
    page.page.evaluate("document.querySelector('.pipeline-places').style.minWidth = '700px'")
    assert page.page.evaluate(_REACHING_OUT)  # it would be noticed
