"""Orders changed by hand: moved, refused with the reason, undone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import explorer as ex
from explorer.core import graph_of
from explorer.errors import CircularWaitError, InputError, ProgramError
from explorer.lowering.obstacle import find_obstacle
from tests.pictures import drawn, picture
from tests.schedules.test_family import NAMES, legal

COSTS = ex.Costs(forward=1, backward=2)


def program(p: int = 3, m: int = 4) -> ex.Program:
    """1F1B: rank 0 begins F0 F1 F2 B0 F3 B1, rank 1 F0 F1 B0 F2."""
    return ex.schedule("1f1b", n_ranks=p, n_micro_batches=m)


def test_an_action_stands_before_the_one_named_and_all_else_as_it_was():
    edited = ex.move(program(), "0F3", before="0B0")
    assert str(edited) == (
        "rank 0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
        "rank 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
        "rank 2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"
    )
    assert edited.name == "1f1b, edited"
    assert ex.move(edited, "0F3", before="0B1").name == "1f1b, edited"


def test_a_backward_put_off_holds_up_the_rank_before():
    """Two ranks, F = 1 and B = 2: B0 of rank 1 behind F1 delays B0 of rank 0 by one."""
    before = program(2, 3)
    after = ex.move(before, "1B0", slot=1 + 1)
    assert picture(ex.simulate(before, COSTS)) == drawn(
        """
        |F0F1 . .B0 -F2B1 - .B2 -|
        | .F0B0 -F1B1 -F2B2 - . .|
        """
    )
    assert picture(ex.simulate(after, COSTS)) == drawn(
        """
        |F0F1 . . .B0 -F2B1 - .B2 -|
        | .F0F1B0 -B1 - .F2B2 - . .|
        """
    )


def test_one_more_forward_first_is_one_more_held_and_may_gain_nothing():
    before, after = (ex.simulate(one, COSTS) for one in (program(), ex.move(program(), "0F3", before="0B0")))
    assert (before.makespan, after.makespan) == (18.0, 18.0)  # (M + P − 1)(F + B)
    assert (before.peak_in_flight[0], after.peak_in_flight[0]) == (3, 4)


def test_what_is_begun_together_moves_together():
    both = ["0F0", "0F1", "(0F2;0B0)", "0B1", "0B2"]
    overlapped = ex.Program.from_orders("overlap", ex.Placement.looped(1), 3, [both])
    assert str(ex.move(overlapped, "0B0", slot=3)) == "rank 0: 0F0 0F1 0B1 (0F2;0B0) 0B2"


def test_further_waits_come_along():
    line = ex.schedule("forward_only", n_ranks=2, n_micro_batches=3).with_waits(("1F0", "0F2", 5.0))
    edited = ex.move(line, "0F2", before="0F1")
    assert str(edited).startswith("rank 0: 0F0 0F2 0F1")
    assert (
        ex.simulate(edited).makespan == 7 + 2 + 2
    )  # F2 begins 5 s after 1F0's end at 2, then F1; rank 1 wants F1 first


def test_moving_to_where_it_is_gives_the_same_program():
    one = program()
    assert ex.move(one, "0F1", slot=1) is one
    assert ex.move(one, "0F1", before="0F2") is one


@pytest.mark.parametrize(
    ("action", "where", "message"),
    [
        (
            "1B3",
            {"before": "1F3"},
            "^1B3 cannot stand before 1F3 on rank 1: 1B3 needs the activations that 1F3 keeps; keep it behind 1F3$",
        ),
        (
            "0F3",
            {"slot": 7},
            "0B2 on rank 0: 0B2 needs 1B2, which stands behind 1F3 on rank 1, which needs 0F3; keep it before 0B2$",
        ),
        (
            "0B0",
            {"slot": 1},
            "^0B0 cannot stand before 0F1 on rank 0: 0B0 needs 1B0, which stands behind 1F1 on rank 1, which needs 0F1",
        ),
    ],
)
def test_a_circle_is_named_from_what_was_moved(action, where, message):
    with pytest.raises(CircularWaitError, match=message) as caught:
        ex.move(program(), action, **where)
    assert caught.value.chain


def test_weights_need_their_inputs_half():
    split = ex.split_backward(program(2, 2))
    with pytest.raises(CircularWaitError, match="0W0 needs the gradients that 0I0 leaves for it"):
        ex.move(split, "0W0", before="0I0")
    assert "0I0 0I1 0W0" in str(ex.move(split, "0I1", before="0W0"))


@pytest.mark.parametrize(
    ("action", "where", "error", "message"),
    [
        ("0F9", {"slot": 0}, ProgramError, "in the program once; 1f1b has none: 0F9; name another"),
        ("0F1", {"before": "1F0"}, ProgramError, "got 0F1 of rank 0 before 1F0 of rank 1; name one of rank 0"),
        ("0F1", {"slot": 8}, InputError, "from 0 to 7, the last of rank 0; got 8"),
        ("0F1", {"slot": True}, InputError, "got True"),
        ("0F1", {}, InputError, "got neither; give one"),
        ("0F1", {"slot": 1, "before": "0F3"}, InputError, "got both; give one"),
        ("F1", {"slot": 1}, InputError, "an action reads"),
    ],
)
def test_moves_that_are_none_are_refused(action, where, error, message):
    with pytest.raises(error, match=message):
        ex.move(program(), action, **where)


def test_edits_say_what_was_moved_and_undo_it():
    edits = ex.Edits(program()).move("0F3", before="0B0").move("2B3", slot=7).move("1B0", slot=1)
    assert [edit.words for edit in edits.done] == [
        "0F3 moved before 0B0 on rank 0",  # 2B3 was there already
        "1B0 moved before 1F1 on rank 1",
    ]
    back = edits.undo()
    assert str(back.program) == str(ex.move(program(), "0F3", before="0B0"))
    assert back.redo().program is edits.program
    assert back.undo().program is edits.original
    assert back.move("0F3", slot=4).undone == ()
    assert ex.Edits(program()).move("0B3", slot=7).done == ()


def test_there_is_an_end_to_undoing():
    with pytest.raises(InputError, match="can be undone; got none"):
        ex.Edits(program()).undo()
    with pytest.raises(InputError, match="can be done again; got none"):
        ex.Edits(program()).redo()


def test_the_end_of_a_rank_is_named():
    assert ex.Edits(program()).move("0F0", slot=0).done == ()
    split = ex.Edits(ex.split_backward(program(2, 2))).move("1W0", slot=5)
    assert split.done[0].words == "1W0 moved to the end of rank 1"


PROGRAMS = st.builds(legal, st.sampled_from(NAMES), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2))


@settings(deadline=None, max_examples=40)
@given(PROGRAMS, st.data())
def test_any_moves_and_undos_lead_back_to_the_same_program(one: ex.Program, data: st.DataObject) -> None:
    edits = ex.Edits(one)
    for _ in range(data.draw(st.integers(1, 6))):
        slot = data.draw(st.integers(0, edits.program.n_slots - 1))
        rank = edits.program.rank_of_slot[slot]
        first, beyond = edits.program.rank_offsets[rank : rank + 2]
        place = data.draw(st.integers(0, int(beyond - first) - 1))
        try:
            moved = edits.move(edits.program.action(int(edits.program.slot_offsets[slot])), slot=place)
        except CircularWaitError:
            continue
        if moved is not edits:
            action = moved.program.action(int(moved.program.slot_offsets[first + place]))
            back = ex.move(moved.program, action, slot=int(slot - first))
            assert str(back) == str(edits.program)
            assert moved.undo().program is edits.program
        edits = moved
    final = str(edits.program)
    n_done = len(edits.done)
    for _ in range(n_done):
        edits = edits.undo()
    assert edits.program is one
    for _ in range(n_done):
        edits = edits.redo()
    assert str(edits.program) == final


@settings(deadline=None, max_examples=40)
@given(PROGRAMS, st.data())
def test_the_obstacle_is_the_nearest_and_there_is_one_only_where_the_check_refuses(
    one: ex.Program, data: st.DataObject
) -> None:
    slot = data.draw(st.integers(0, one.n_slots - 1))
    first, beyond = (int(end) for end in one.rank_offsets[one.rank_of_slot[slot] :][:2])
    action = one.action(int(one.slot_offsets[slot]))
    for place in range(first, beyond):
        obstacle = find_obstacle(graph_of(one), slot, place)
        if obstacle is None:
            ex.move(one, action, slot=place - first)
            continue
        with pytest.raises(CircularWaitError, match="cannot stand"):
            ex.move(one, action, slot=place - first)
        beside = obstacle.slot + (1 if place < slot else -1)
        ex.move(one, action, slot=beside - first)  # as near as it may come
