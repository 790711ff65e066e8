"""A change of JupyterLab's theme, for which it hides the page a moment."""

from __future__ import annotations

from tests.browser.fixtures import write_notebook
from tests.browser.lab import Lab

_CORNER = """() => {
  const strip = document.querySelector('.pipeline-strip');
  return strip.getContext('2d').getImageData(strip.width - 1, 0, 1, 1).data[0];
}"""


def test_the_overview_follows_the_theme(lab: Lab) -> None:
    write_notebook(lab.folder, "theme.ipynb", ["import explorer as ex\nex.explore(run_on_change=False)"])
    page = lab.open("theme.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.page.wait_for_function(f"({_CORNER})() > 200")
    page.theme("JupyterLab Dark")
    page.page.wait_for_function(f"({_CORNER})() < 60")
    page.theme("JupyterLab Light")
    page.page.wait_for_function(f"({_CORNER})() > 200")
