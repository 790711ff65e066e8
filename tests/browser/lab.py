"""Opening notebooks in JupyterLab, and what tests do there: everything waits on the page's state."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

_TIMEOUT = 30_000  # ms
# said by JupyterLab itself, whatever runs in it
_OF_LAB = (
    "favicon",
    "jupyterlab-manager",
    "net::ERR_NAME_NOT_RESOLVED",
    "The PerformanceObserver does not support",
    "to activate.",
)
_KERNEL_READY = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready; await panel.sessionContext.ready; await panel.sessionContext.session.kernel.info;
}"""
_RUN_CELL = """index => {
  window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
  window.jupyterapp.commands.execute('notebook:run-cell');
}"""


class Lab:
    """A JupyterLab, and the pages opened in it."""

    def __init__(self, browser: Any, url: str, token: str, folder: Path) -> None:
        self._browser, self._url, self._token = browser, url, token
        self.folder = folder
        self._contexts: list[Any] = []

    def open(self, notebook: str, *, width: int = 1280, height: int = 1250) -> Page:
        """The notebook in a page of its own, its kernel ready."""
        context = self._browser.new_context(viewport={"width": width, "height": height})
        self._contexts.append(context)
        page = Page(context.new_page())
        page.goto(f"{self._url}/doc/tree/{notebook}?token={self._token}")
        return page

    def close(self) -> None:
        """Close the pages and end the kernels."""
        for context in self._contexts:
            context.close()
        request = urllib.request.Request(f"{self._url}/api/sessions?token={self._token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            sessions = json.load(answer)
        for session in sessions:
            address = f"{self._url}/api/sessions/{session['id']}?token={self._token}"
            urllib.request.urlopen(urllib.request.Request(address, method="DELETE"), timeout=10).close()


class Page:
    """One notebook in one page.

    Attributes:
        page: playwright's.
        complaints: errors and warnings of the console that are not JupyterLab's own, and exceptions.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error.stack}"))
        page.set_default_timeout(_TIMEOUT)

    def goto(self, url: str) -> None:
        """Open the notebook and wait for its kernel."""
        self.page.goto(url)
        self.await_kernel()

    def await_kernel(self) -> None:
        """Wait until the notebook's kernel is idle."""
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext")
        self.page.evaluate(_KERNEL_READY)

    def run_cell(self, index: int) -> None:
        """Run one cell; does not wait for its end."""
        self.page.evaluate(_RUN_CELL, index)

    def run_all(self) -> None:
        """Run all cells."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme."""
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        light = "false" if "Dark" in name else "true"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")

    def data(self, name: str) -> str:
        """What the timeline says of itself: `barsDrawn`, `measuredDrawn`, `paintedSeq`, `mode`."""
        return str(self.page.evaluate(f"document.querySelector('.pipeline-timeline')?.dataset.{name} ?? ''"))

    def await_data(self, condition: str, *, timeout: int = _TIMEOUT) -> None:
        """Wait until the JavaScript `condition` on the timeline's dataset `d` holds."""
        script = (
            f"() => {{ const d = document.querySelector('.pipeline-timeline')?.dataset; return d && ({condition}); }}"
        )
        try:
            self.page.wait_for_function(script, timeout=timeout)
        except Exception as error:
            said = self.page.locator(".jp-OutputArea-output").all_inner_texts()
            raise AssertionError(
                f"{condition} did not come true; console: {self.complaints}; output: {said}"
            ) from error

    def await_painted(self, seq: int) -> None:
        """Wait until the frame number `seq` has been painted."""
        self.await_data(f"Number(d.paintedSeq) >= {seq}")

    def field(self, label: str) -> Any:
        """The field with this label."""
        return self.page.locator(".pipeline-field").filter(has=self.page.locator(f'label:text-is("{label}")'))

    def enter(self, label: str, value: object) -> None:
        """Type a number into a slider's readout."""
        readout = self.field(label).locator(".widget-readout").first
        readout.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(str(value))
        self.page.keyboard.press("Enter")

    def choose(self, label: str, title: str) -> None:
        """Choose from a list."""
        self.field(label).locator("select").select_option(label=title)

    def drag(self, label: str, by: int) -> None:
        """Drag a slider's handle by this many pixels, in small moves."""
        handle = self.field(label).locator(".noUi-handle").first
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + by, y, steps=10)
        self.page.mouse.up()

    def press(self, name: str) -> None:
        """Press one of the app's buttons."""
        self.page.locator(".pipeline-explorer button").filter(has_text=name).locator("visible=true").first.click()

    def status(self) -> str:
        """The sentence on what is being shown."""
        return str(self.page.locator(".pipeline-status").first.inner_text())

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(known in message.text for known in _OF_LAB):
            self.complaints.append(f"{message.type}: {message.text}")
