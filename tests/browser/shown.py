"""The picture alone, in a page of its own, and what tests do with it."""

from __future__ import annotations

from typing import Any

import explorer as ex

# rank 0: F0 F1 F2 F3 at 0, 1, 2, 3, then idle until B0 at 9; in ms
COSTS = ex.Costs(forward=0.001, backward=0.002)


class Shown:
    """A page with the picture of a trace."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(error.stack))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def data(self, name: str) -> str:
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return str(self.page.evaluate(f"document.querySelector('.pipeline-timeline').dataset.{name}"))

    def range(self) -> tuple[float, float]:
        start, end = self.data("range").split(",")
        return float(start), float(end)

    def keys(self, *keys: str) -> str:
        """Press them on the picture; what a screen reader is told then."""
        self.page.locator(".pipeline-canvas").focus()
        for key in keys:
            self.page.keyboard.press(key)
        return str(self.page.locator(".pipeline-spoken").text_content())


def simulated(n_ranks: int = 4, n_micro_batches: int = 8) -> ex.Trace:
    """1F1B at those costs."""
    return ex.simulate(ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches), COSTS)
