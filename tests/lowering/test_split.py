"""A backward in two halves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from tests.schedules.test_family import NAMES, legal


def test_each_backward_becomes_its_two_halves() -> None:
    program = ex.split_backward(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    assert str(program) == "rank 0: 0F0 0F1 0I0 0W0 0I1 0W1\nrank 1: 1F0 1I0 1W0 1F1 1I1 1W1"


def test_of_an_overlapped_backward_the_weights_follow_the_slot() -> None:
    both = ex.Overlap([ex.Action(ex.Kind.F, 0, 1), ex.Action(ex.Kind.B, 0, 0)])
    program = ex.Program.from_orders("overlap", ex.Placement.looped(1), 2, [["0F0", both, "0B1"]])
    assert str(ex.split_backward(program)) == "rank 0: 0F0 (0F1;0I0) 0W0 0I1 0W1"


def test_the_gradient_leaves_before_the_weights_are_done() -> None:
    """One micro-batch, two ranks, F = 1, I = W = 1: F F I, then W of the last beside I of the first, then W."""
    program = ex.schedule("naive", n_ranks=2, n_micro_batches=1)
    costs = ex.Costs(forward=1, backward_input=1, backward_weight=1)
    assert ex.simulate(program, costs).makespan == 6.0
    assert ex.simulate(ex.split_backward(program), costs).makespan == 5.0


@settings(deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 4), st.integers(1, 6), st.integers(1, 3))
def test_splitting_leaves_a_complete_program_with_equal_work_that_ends_no_later(
    name: str, p: int, m: int, v: int
) -> None:
    program = legal(name, p, m, v)
    split = ex.check(ex.split_backward(program))
    assert not (split.kind == ex.Kind.B).any()
    before, after = ex.simulate(program), ex.simulate(split)
    assert ex.Costs().action_seconds(split).sum() == pytest.approx(ex.Costs().action_seconds(program).sum())
    assert after.makespan <= before.makespan + 1e-9


def test_an_incomplete_program_is_not_split() -> None:
    program = ex.Program.from_orders("short", ex.Placement.looped(1), 1, ["0B0"])
    with pytest.raises(ex.ExplorerError, match="0F0 is missing"):
        ex.split_backward(program)
