"""Drawings in text, there and back."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.core import message_pairs
from explorer.errors import InputError, ProgramError


def test_a_drawing_with_one_stage_a_rank_needs_no_stages() -> None:
    program = ex.from_grid(
        """
        rank 0  F0 F1 .  .  B0 B1
        rank 1  .  F0 B0 F1 B1 .
        """
    )
    assert str(program) == "rank 0: 0F0 0F1 0B0 0B1\nrank 1: 1F0 1B0 1F1 1B1"
    assert program.name == "own"
    assert ex.check(program) is program


def test_the_drawing_of_interleaved_1f1b_is_its_order() -> None:
    # Narayanan et al. 2021, arXiv:2104.04473, figure 4, for 2 ranks, 2 chunks and 2 micro-batches
    drawn = ex.from_grid(
        """
        rank 0  0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1      stages 0 and 2
        rank 1   .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1  .       # stages 1 and 3
        """
    )
    assert str(drawn) == str(ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=2))
    assert drawn.placement.routes.tolist() == [[0, 1, 0, 1]]


def test_ranks_need_no_title_and_idle_slots_no_dots() -> None:
    assert str(ex.from_grid("F0 F1 B0 B1\nF0 B0 - · | F1 B1")) == "rank 0: 0F0 0F1 0B0 0B1\nrank 1: 1F0 1B0 1F1 1B1"


def test_actions_begun_together_stand_in_brackets() -> None:
    program = ex.from_grid("F0 (F1;B0) B1")
    assert [str(slot) for slot in program.order(0)] == ["0F0", "(0F1;0B0)", "0B1"]
    assert ex.to_grid(program) == "rank 0  F0      (F1;B0) B1"


def test_to_grid_draws_idle_slots_as_dots() -> None:
    # arXiv:1811.06965, figure 2(c), with backwards as wide as forwards
    assert ex.to_grid(ex.schedule("gpipe", n_ranks=3, n_micro_batches=2)) == (
        "rank 0  F0 F1 .  .  .  .  B0 B1\n"
        "rank 1  .  F0 F1 .  .  B0 B1 .\n"
        "rank 2  .  .  F0 F1 B0 B1 .  ."
    )  # fmt: skip


def test_to_grid_names_stages_where_a_rank_has_several() -> None:
    drawn = ex.to_grid(ex.schedule("forward_only", n_ranks=2, n_micro_batches=1, n_chunks=2))
    assert drawn == "rank 0  0F0 .   2F0 .\nrank 1  .   1F0 .   3F0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("F0 B0\nF0 X0", r"got 'X0' in line 2, column 4; a dot is idle"),
        ("rank 0  F0 b0", r"got 'b0' in line 1, column 12"),
        ("F0 B0 F", r"micro-batches 0–1; got 0F, which is outside"),
        ("rank 0 F0 B0\nrank 0 F0 B0", "each once; got rank 0 in line 2; it is the place of rank 1"),
        ("rank 1 F0 B0", "got rank 1 in line 1; it is the place of rank 0"),
        ("", "a line for each rank; got none; try 'F0 B0'"),
        (5, "a text with a line a rank; got int"),
        ("F0 F1 B1", "0B0 is missing from rank 0"),
        ("B0 F0", "wait for each other in a circle"),
        ("F0\n" * 65_537, "a line for each rank, at most 65,536; got 65,537"),
        ("F0 " * 1_000_001, "at most 1,000,000 words; got 1,000,001; try explorer.from_frame"),
        ("F0@1 B0", "got 'F0@1' in line 1, column 1"),
        ("F0 SEND_F0@x B0", "got 'SEND_F0@x' in line 1, column 4"),
        (" " * 16_000_001, "at most 16,000,000 characters; got 16,000,001"),
    ],
)
def test_from_grid_names_the_word_it_cannot_read(text: str, message: str) -> None:
    with pytest.raises((InputError, ProgramError), match=message):
        ex.from_grid(text)


def test_to_grid_refuses_what_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="needs a Program; got int"):
        ex.to_grid(5)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="0B0 is missing"):
        ex.to_grid(ex.Program.from_orders("own", ex.Placement.looped(1), 2, ["0F0 0F1 0B1"]))
    with pytest.raises(
        InputError, match=r"at most 4,000,000 cells; got 1,500 ranks × 3,000 columns; try program\.to_frame"
    ):
        ex.to_grid(ex.schedule("naive", n_ranks=1500, n_micro_batches=1))


def test_to_grid_warns_of_what_cannot_be_drawn() -> None:
    with pytest.warns(UserWarning, match="pipedream: a drawing holds orders only; its weight versions are left out"):
        ex.to_grid(ex.schedule("pipedream", n_ranks=2, n_micro_batches=2))


def test_a_message_past_the_next_stage_is_drawn_with_the_rank_at_its_other_end() -> None:
    drawn = "rank 0  F0        SEND_F0@2\nrank 1  .         F0\nrank 2  .         .         RECV_F0@0 F0"
    program = ex.from_grid(drawn)
    assert [column.tolist() for column in message_pairs(program)] == [[1], [3]]
    assert [line.split(".")[0].split() for line in ex.to_grid(program).splitlines()][:2] == [
        ["rank", "0", "F0", "SEND_F0@2"],
        ["rank", "1"],
    ]
    assert str(ex.from_grid(ex.to_grid(program))) == str(program)
