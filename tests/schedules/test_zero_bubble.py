"""ZB-H1 and ZB-H2, the hand-made zero-bubble schedules: literal pictures, closed forms, memory, refusals."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import ScheduleError
from tests.pictures import drawn, picture

UNEQUAL = [(1, 1, 1), (3, 2, 1), (10, 9, 5)]  # F, I, W with W ≤ min(F, I)


def _trace(name: str, p: int, m: int, f: float, i: float, w: float) -> ex.Trace:
    program = ex.schedule(name, n_ranks=p, n_micro_batches=m)
    return ex.simulate(program, ex.Costs(forward=f, backward_input=i, backward_weight=w))


def test_zb_h1_is_the_upper_half_of_figure_3() -> None:
    # arXiv:2401.10241, figure 3 (the paper's B is I)
    assert picture(_trace("zb_h1", 4, 8, 1, 1, 1)) == drawn("""
        |F0F1F2F3 . . .I0W0F4I1W1F5I2W2F6I3W3F7I4W4I5W5I6W6I7W7|
        | .F0F1F2 . .I0F3I1W0F4I2W1F5I3W2F6I4W3F7I5W4I6W5I7W6W7|
        | . .F0F1 .I0F2I1F3I2W0F4I3W1F5I4W2F6I5W3F7I6W4I7W5W6W7|
        | . . .F0I0F1I1F2I2F3I3W0F4I4W1F5I5W2F6I6W3F7I7W4W5W6W7|
    """)


def test_zb_h2_is_the_lower_half_of_figure_3() -> None:
    # arXiv:2401.10241, figure 3: a parallelogram without a gap
    assert picture(_trace("zb_h2", 4, 8, 1, 1, 1)) == drawn("""
        |F0F1F2F3F4F5F6I0W0F7I1W1I2W2I3W3I4W4I5W5I6W6I7W7 . . .|
        | .F0F1F2F3F4I0F5I1F6I2W0F7I3W1I4W2I5W3I6W4I7W5W6W7 . .|
        | . .F0F1F2I0F3I1F4I2F5I3F6I4W0F7I5W1I6W2I7W3W4W5W6W7 .|
        | . . .F0I0F1I1F2I2F3I3F4I4F5I5F6I6W0F7I7W1W2W3W4W5W6W7|
    """)


@pytest.mark.parametrize(("name", "depth"), [("zb_h1", 1), ("zb_h2", 2)])
@pytest.mark.parametrize("p", [*range(2, 9), 12, 16])
def test_longest_span_is_what_table_2_says(name: str, depth: int, p: int) -> None:
    # arXiv:2401.10241, table 2: the bubble of the longest span, (P−1)(F+I−W) for H1 and (P−1)(F+I−2W) for H2, for
    # M ≥ P resp. 2P−1 and W ≤ min(F, I); by makespan H2's does not hold, its ranks are shifted against each other
    for m in sorted({depth * (p - 1) + 1, 2 * p + 1, 33, 64}):
        for f, i, w in UNEQUAL:
            trace = _trace(name, p, m, f, i, w)
            assert trace.span_per_rank.max() == m * (f + i + w) + (p - 1) * (f + i - depth * w)
        assert trace.peak_in_flight.tolist() == [depth * (p - 1) + 1] * p


def test_weights_slower_than_forwards_are_outside_the_formula() -> None:
    # a trap of table 2: F, I, W = 1, 2, 2 on 2 ranks with 2 micro-batches; the formula says a bubble of 1, it is 2
    trace = _trace("zb_h1", 2, 2, 1, 2, 2)
    assert trace.span_per_rank.max() - 2 * (1 + 2 + 2) == 2


@pytest.mark.parametrize("name", ["zb_h1", "zb_h2"])
def test_chunks_are_refused_with_what_has_them(name: str) -> None:
    with pytest.raises(ScheduleError, match="n_chunks is 1; got 2; try 1, or interleaved_zb") as caught:
        ex.schedule(name, n_ranks=4, n_micro_batches=8, n_chunks=2)
    assert (caught.value.argument, caught.value.legal) == ("n_chunks", (1,))
