"""Actions as text, many at once, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import explorer as ex
from explorer.core import MESSAGE_KINDS, PER_STAGE_KINDS, Kind
from explorer.core.words import program_of_words
from explorer.errors import InputError

NUMBERS = st.integers(0, 10**9 - 1)
KIND = st.sampled_from
MESSAGES = st.tuples(KIND(MESSAGE_KINDS), NUMBERS, NUMBERS, NUMBERS, st.integers(-1, 10**9 - 1))
OTHERS = st.tuples(KIND([kind for kind in Kind if kind not in MESSAGE_KINDS]), NUMBERS, NUMBERS, NUMBERS)
PER_STAGE = st.tuples(KIND(PER_STAGE_KINDS), NUMBERS)
ACTIONS = (MESSAGES | OTHERS | PER_STAGE).map(lambda columns: ex.Action(*columns))
SLOTS = st.lists(st.lists(ACTIONS, min_size=1, max_size=3), min_size=1, max_size=5)


def spelled(action: ex.Action) -> str:
    return f"{action}@{action.peer}" if action.peer >= 0 else str(action)


def refused(row: int, place: int) -> InputError:
    return InputError(f"row {row}, place {place}")


@given(st.lists(SLOTS, min_size=1, max_size=3))
def test_any_actions_are_read_as_they_are_spelled(orders: list[list[list[ex.Action]]]) -> None:
    rows = [[f"({';'.join(map(spelled, slot))})" if slot[1:] else spelled(slot[0]) for slot in row] for row in orders]
    program = program_of_words("own", rows, refused)
    actions = [action for row in orders for slot in row for action in slot]
    assert [program.action(index) for index in range(program.n_actions)] == actions
    assert np.diff(program.slot_offsets).tolist() == [len(slot) for row in orders for slot in row]
    assert np.diff(program.rank_offsets).tolist() == [len(row) for row in orders]
    assert [ex.Action.parse(spelled(action)) for action in actions] == actions


def test_a_program_spells_the_peers_that_its_placement_does_not_say() -> None:
    there = (ex.Action(Kind.SEND_F, 0, 0, 0, peer) for peer in (-1, 1, 2))
    program = ex.Program.from_orders("skip", ex.Placement.looped(3), 1, [list(there), [], []])
    assert program.words() == ["0SEND_F0", "0SEND_F0", "0SEND_F0@2"]
    again = ex.Program.from_orders("skip", ex.Placement.looped(3), 1, [" ".join(program.words()), "", ""])
    assert again.peer.tolist() == [-1, -1, 2]


@pytest.mark.parametrize("word", ["0F0@1", "0SEND_F0@", "0SEND_F0@-1", "0F0\n0B0", "(0F0;)", "0F0.1@2", "٣F0"])
def test_a_word_that_names_no_action_is_refused_by_its_place(word: str) -> None:
    rows = [["0F0"], ["1F0", word, "x"]]
    with pytest.raises(InputError, match="row 1, place 1"):
        program_of_words("own", rows, refused)
