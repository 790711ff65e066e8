"""An order edited with the hand in a real browser: dragged, refused with the reason, undone."""

from __future__ import annotations

from tests.browser.conftest import write_notebook
from tests.browser.lab import Lab, Page

WHOLE = 330 * 1.005  # ms in the picture: 1F1B on 4 ranks with 8 micro-batches of 10 and 20 ms
LEFT, RIGHT, TOP = 64, 12, 7  # margins of the lanes on the canvas


class Hand:
    """Places on the lanes of the app's picture, by time and rank."""

    def __init__(self, app: Page) -> None:
        self._page = app.page
        canvas = self._page.locator(".pipeline-canvas")
        canvas.scroll_into_view_if_needed()
        self._box = canvas.bounding_box()

    def at(self, time: float, rank: int) -> tuple[float, float]:
        width = self._box["width"] - LEFT - RIGHT
        lane = self._box["height"] * 0.6 / 4  # less than a lane, so well within each of the upper ones
        return self._box["x"] + LEFT + time / WHOLE * width, self._box["y"] + TOP + (rank + 0.5) * lane

    def drag(self, rank: int, start: float, end: float, *, drop: bool = True) -> None:
        """Take hold of what runs at `start` and let it go at `end`, in ms."""
        self._page.mouse.move(*self.at(start, rank))
        self._page.mouse.down()
        self._page.mouse.move(*self.at(end, rank), steps=6)
        if drop:
            self._page.mouse.up()


def said(app: Page, text: str) -> None:
    app.page.locator(".pipeline-under").get_by_text(text).wait_for()


def test_a_bar_is_dragged_refused_and_put_back(lab: Lab) -> None:
    write_notebook(lab.folder, "edit.ipynb", ["import explorer as ex\napp = ex.explore(run_on_change=False)\napp"])
    app = lab.open("edit.ipynb")
    app.run_cell(0)
    app.await_painted(1)
    app.press("Edit order")
    said(app, "Drag a bar along its rank")
    hand = Hand(app)

    hand.drag(0, 125, 70, drop=False)  # F4 of rank 0, to the idle time before B0
    assert app.page.locator(".pipeline-ghost").text_content() == "F4"
    assert app.page.locator(".pipeline-insertion").is_visible()
    app.page.mouse.up()
    said(app, "0F4 moved before 0B0 on rank 0: makespan stays 330 ms, peak on rank 0 4 → 5")
    app.page.locator(".pipeline-number").get_by_text("4 3 2 1 → 5 3 2 1").wait_for()

    painted = app.data("paintedSeq")
    hand.drag(0, 110, 15)  # B0 of rank 0, to before F1
    app.page.locator(".pipeline-verdict").get_by_text("0B0 cannot stand before").wait_for()
    assert app.data("paintedSeq") == painted

    app.page.keyboard.press("Control+z")
    said(app, "Undone: 0F4 moved before 0B0 on rank 0: makespan stays 330 ms, peak on rank 0 5 → 4")
    assert not app.page.locator(".pipeline-verdict").is_visible()
    app.page.mouse.click(*hand.at(125, 0))
    app.page.get_by_role("tooltip").get_by_text("micro-batch 4").wait_for()
    app.page.keyboard.press("Alt+ArrowLeft")
    said(app, "0F4 moved before 0B0 on rank 0")
    app.page.get_by_role("tooltip").wait_for(state="hidden")  # nothing runs there any more
    app.page.keyboard.press("Control+z")
    app.page.keyboard.press("Control+Shift+z")
    said(app, "0F4 moved before 0B0 on rank 0: makespan")

    verdict = app.page.locator(".pipeline-verdict")
    hand.drag(0, 110, 15)
    verdict.get_by_text("0B0 cannot stand before").wait_for()
    app.enter("Micro-batches", 9)  # another picture
    verdict.wait_for(state="hidden")
    assert app.complaints == []
