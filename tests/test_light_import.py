"""What it costs to import the package, and what works where the heavy packages are not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "numba", "pandas", "plotly", "ipywidgets", "anywidget", "IPython")

SIMULATE = """
import explorer as ex
program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
summary = ex.simulate(program, ex.Costs(forward=1.0, backward=2.0)).summary()
"""
SUMMARY = {  # 1F1B: (M + P − 1)(F + B) = 11 · 3, each rank busy for 8 · 3, rank r holds P − r
    "makespan": 33.0,
    "bubble_ratio": 3 / 11,
    "bubble_overhead": 3 / 8,
    "idle_per_rank": [9.0] * 4,
    "peak_in_flight": [4, 3, 2, 1],
}


def fresh(code: str) -> str:
    """What `code` prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def heavy_after(*codes: str) -> list[list[str]]:
    """The heavy packages that are loaded after each of `codes`, run one after the other in one new interpreter."""
    look = f"import sys\nprint(*(name for name in {HEAVY} if name in sys.modules), end=';')"
    return [line.split() for line in fresh("\n".join(f"{code}\n{look}" for code in codes)).split(";")[:-1]]


def without(*packages: str) -> str:
    """Code after which importing `packages` fails, as where they are not installed."""
    return f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n"


def test_importing_listing_the_names_and_simulating_load_nothing_heavy_but_numba_once_it_is_worth_it():
    large = SIMULATE.replace("n_micro_batches=8", "n_micro_batches=800")
    codes = ("import explorer", "dir(explorer)\nexplorer.__all__", SIMULATE, large)
    assert heavy_after(*codes) == [[], [], [], ["numba"]]


def test_the_look_at_loaded_packages_sees_a_heavy_one():
    """The proof that the test above can fail."""
    first, second = heavy_after("import explorer, pandas", "import plotly")
    assert "pandas" in first
    assert "plotly" not in first
    assert "plotly" in second


SITUATIONS = {
    "compiled": "import explorer.core.kernels as kernels\nkernels._SMALL = -1\n",  # none is small enough for Python
    "small, so not compiled": "",
    "no numba": without("numba"),
    "nothing heavy": without(*HEAVY),
}


@pytest.mark.parametrize("before", SITUATIONS.values(), ids=SITUATIONS)
def test_simulating_gives_the_same_numbers_whatever_is_installed(before):
    code = f"{before}{SIMULATE}\nimport json\nprint(json.dumps(summary))"
    summary = json.loads(fresh(code))
    assert summary.keys() == SUMMARY.keys()
    for name, expected in SUMMARY.items():
        assert summary[name] == pytest.approx(expected), name


def test_a_package_made_absent_really_is():
    """The proof that the test above can fail."""
    with pytest.raises(AssertionError, match="numba"):
        fresh(f"{without('numba')}import numba")
