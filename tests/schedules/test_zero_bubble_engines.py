"""Every zero-bubble schedule under uneven costs: both engines agree, and so do compiled and plain searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import explorer as ex
from explorer.schedules import line_search, v_search

NAMES = ["zb_h1", "zb_h2", "zb_1p", "zb_2p", "zb_v", "v_half", "v_min", "v_1f1b", "dualpipe", "dualpipev"]


@given(
    st.sampled_from([*NAMES, "interleaved_zb"]),
    st.integers(1, 3),
    st.integers(0, 6),
    st.floats(0, 1),
    st.floats(0.1, 3),
)
def test_both_engines_give_the_same_trace(name: str, half: int, more: int, latency: float, weight: float) -> None:
    p = 2 * half
    program = ex.schedule(name, n_ranks=p, n_micro_batches=2 * p if name == "interleaved_zb" else 2 * p + 2 * more)
    costs = ex.Costs(forward=np.linspace(1, 2, program.n_stages), backward_weight=weight, latency=latency)
    fast, reference = ex.simulate(program, costs), ex.simulate_events(program, costs)
    np.testing.assert_allclose(fast.events.start, reference.events.start)
    np.testing.assert_allclose(fast.events.end, reference.events.end)


@pytest.mark.parametrize(
    ("module", "kernel", "name"),
    [(v_search, "_plan", "zb_v"), (line_search, "_plan", "zb_1p")],
)
def test_searches_find_the_same_without_numba(
    monkeypatch: pytest.MonkeyPatch, module: object, kernel: str, name: str
) -> None:
    numbers = {"n_ranks": 6, "n_micro_batches": 80, "costs": ex.Costs(forward=3, backward_weight=2, latency=0.25)}
    compiled = ex.schedule(name, **numbers)
    plain = getattr(module, kernel).__wrapped__
    monkeypatch.setattr(module, kernel, plain)
    assert str(ex.schedule(name, **numbers)) == str(compiled)
