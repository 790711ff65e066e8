"""What orders alone say of a program."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.core.inference import inferred
from explorer.errors import ProgramError


def program(*orders: str) -> ex.Program:
    return inferred(ex.Program.from_orders("own", ex.Placement.looped(len(orders)), 1, list(orders)))


def test_numbers_and_a_straight_placement_are_seen() -> None:
    own = program("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")
    assert (own.n_stages, own.n_micro_batches, own.n_segments) == (2, 2, 1)
    assert own.placement.routes.tolist() == [[0, 1]]


def test_a_split_backward_counts_as_one() -> None:
    own = program("0F0 0F1 0F2 0B0 0I1 0W1 0I2 0W2")
    assert own.n_micro_batches == 3
    assert ex.check(own) is own


def test_two_directions_give_two_routes() -> None:
    # Li and Hoefler 2021, Chimera, arXiv:2107.06925, figure 3: half of the micro-batches travel the other way
    own = program("0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1")
    assert own.placement.routes.tolist() == [[0, 1], [1, 0]]
    assert own.placement.weight_copies.tolist() == [2, 2]
    assert ex.check(own) is own


def test_what_one_wrong_entry_says_is_outvoted() -> None:
    # rank 1 has F2 where F1 should be: there are still two micro-batches
    with pytest.raises(ProgramError, match="got 1F2, which is outside; 1F1 is missing; 1B1 in slot 3 so comes before"):
        ex.check(program("0F0 0F1 0B0 0B1", "1F0 1B0 1F2 1B1"))
    # 0B1 is on the wrong rank: stage 0 still belongs on rank 0
    with pytest.raises(ProgramError, match=r"0B1 belongs on rank 0; move it there \(rank 1, slot 4"):
        ex.check(program("0F0 0F1 0B0", "1F0 1B0 1F1 1B1 0B1"))
    # a wrong entry in one of two directions
    with pytest.raises(ProgramError, match="1B2 belongs on rank 1"):
        ex.check(program("0F0 1F1 1B1 0B0 0F2 0B2 1B2", "0F1 1F0 1B0 0B1 1F2"))


def test_of_equal_counts_the_larger_holds() -> None:
    with pytest.raises(ProgramError, match="0B1 is missing from rank 0"):
        ex.check(program("0F0 0F1 0B0"))


def test_nothing_large_is_made_of_few_actions() -> None:
    # 2000 stages of one micro-batch and 2000 of one stage, but not four million
    stages, batches = (
        " ".join(texts) for texts in ([f"{s}F0" for s in range(2000)], [f"0F{m}" for m in range(1, 2000)])
    )
    with pytest.raises(ProgramError, match="micro-batches 0–0; got 0F1, which is outside"):
        ex.check(program(f"{stages} {batches}"))
    with pytest.raises(
        ProgramError, match="2 stages and 1,000,000 micro-batches make at least 2,000,000 actions; got 2"
    ):
        inferred(program("0F0", "1F0"), n_micro_batches=1_000_000)
