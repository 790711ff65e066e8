"""From a key on a slider to painted bars, in a real browser: pytest -m benchmark tests/benchmarks/test_slider.py"""

from __future__ import annotations

import statistics

import pytest

from tests.browser.fixtures import write_notebook
from tests.browser.lab import Lab, Page

_PRESSES = 24

# the time from the key to the paint of the next frame, seen by the page itself
_PRESS = """([key, label]) => new Promise(resolve => {
  const timeline = document.querySelector('.pipeline-timeline');
  const handle = [...document.querySelectorAll('.widget-slider')]
    .find(f => f.querySelector('label')?.textContent === label).querySelector('.noUi-handle');
  const begin = performance.now();
  const observer = new MutationObserver(() => { observer.disconnect(); resolve(performance.now() - begin); });
  observer.observe(timeline, {attributes: true, attributeFilter: ['data-painted-seq']});
  handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
})"""

# a slider and a widget that draws nothing: what is left is the way to the kernel and back, and a paint of the page
_NOTHING = (
    """
import anywidget, ipywidgets, traitlets

class Nothing(anywidget.AnyWidget):
    _esm = """
    + repr("""
export default { render({ model, el }) {
  el.classList.add("pipeline-timeline");
  const tell = () => { el.dataset.paintedSeq = model.get("n"); };
  const seen = () => requestAnimationFrame(() => scheduler.postTask(tell, { priority: "user-blocking" }));
  model.on("change:n", seen);
  seen();
} };
""")
    + """
    n = traitlets.Int(1).tag(sync=True)

slider, nothing = ipywidgets.IntSlider(32, 1, 64, description="Number"), Nothing()
slider.observe(lambda change: nothing.set_trait("n", change["new"]), "value")
ipywidgets.VBox([slider, nothing])
"""
)


@pytest.mark.benchmark
def test_what_a_slider_needs_that_changes_nothing(lab: Lab) -> None:
    write_notebook(lab.folder, "nothing.ipynb", [_NOTHING])
    page = lab.open("nothing.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.page.wait_for_timeout(2_000)
    times = _press(page, "Number", to_and_fro=True)
    print(f"\nan empty widget: min {min(times):4.0f} ms   median {statistics.median(times):4.0f} ms")
    assert min(times) > 0


@pytest.mark.benchmark
@pytest.mark.parametrize("to_and_fro", [False, True])
@pytest.mark.parametrize(
    ("n_ranks", "n_micro_batches", "latency", "limit"),
    [
        (8, 32, 0.0, 50),
        (64, 512, 0.0, 100),
        (64, 512, 0.001, 100),  # with a message between any two ranks, both ways
    ],
)
def test_slider_to_paint(
    lab: Lab, n_ranks: int, n_micro_batches: int, latency: float, limit: float, to_and_fro: bool
) -> None:
    sizes = f"n_ranks={n_ranks}, n_micro_batches={n_micro_batches + (0 if to_and_fro else _PRESSES)}, latency={latency}"
    cell = f"import explorer as ex\nex.explore({sizes}, run_on_change=False)"
    write_notebook(lab.folder, "slider.ipynb", [cell])
    page = lab.open("slider.ipynb")
    page.run_cell(0)
    page.await_painted(1)
    page.page.wait_for_timeout(15_000)  # torch is imported once the app is shown
    times = _press(page, "Micro-batches", to_and_fro=to_and_fro)
    bars = int(page.data("barsDrawn"))
    how = "to and fro" if to_and_fro else "new values"
    print(f"\n{n_ranks:>3} × {n_micro_batches:<4} {bars:>7,} bars, {how}   min {min(times):4.0f} ms   ", end="")
    print(f"median {statistics.median(times):4.0f} ms   limit {limit} ms")
    assert bars == 2 * n_micro_batches * (n_ranks + (n_ranks - 1 if latency else 0))
    assert statistics.median(times) <= limit


def _press(page: Page, label: str, *, to_and_fro: bool) -> list[float]:
    """Milliseconds from each key on a slider to the paint of what it changed: each time less, or less and more."""
    times = []
    for turn in range(_PRESSES):
        key = "ArrowRight" if to_and_fro and turn % 2 else "ArrowLeft"
        times.append(page.page.evaluate(_PRESS, [key, label]))
        page.page.wait_for_timeout(60)
    return times
