"""Under the picture: numbers against those before, delays by a click, an order edited by hand."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.core import Action
from explorer.errors import CircularWaitError
from explorer.widgets.chosen import action_of
from explorer.widgets.columns import packed_order
from explorer.widgets.reference import Reference


@pytest.fixture
def app():
    """1F1B of F = 1 s and B = 2 s on 4 ranks: rank 0 begins F0 F1 F2 F3 B0 F4 B1, and ends after 33 s."""
    made = ex.explore(forward=1.0, run_on_change=False)
    yield made
    made.close()


@pytest.fixture
def registered():
    names: list[str] = []
    yield names
    for name in names:
        ex.unregister(name)


def value(app: ex.Explorer, name: str, to: object) -> None:
    app.controls.fields[name].control.value = to


def number(app: ex.Explorer, name: str) -> tuple[str, str]:
    (found,) = [one for one in app.timeline.numbers if one["name"] == name]
    return found["values"][0], found["of"]


def move(app: ex.Explorer, action: str, before: str | None = None, by: int = 0) -> str:
    app.under.move(Action.parse(action), before=None if before is None else Action.parse(before), by=by)
    return app.under.refused or app.under.said


# ── the order ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_move_says_what_it_changed_and_is_what_the_app_has(app):
    assert move(app, "0F4", "0B0") == (
        "0F4 moved before 0B0 on rank 0: makespan stays 33 s, peak on rank 0 4 → 5"  # one more forward first
    )
    assert str(app.program).startswith("rank 0: 0F0 0F1 0F2 0F3 0F4 0B0 0B1 0F5")
    assert app.prediction.trace.program is app.program
    assert number(app, "peak in flight") == ("4 3 2 1 → 5 3 2 1", "micro-batches, by rank; before → now")
    assert app.under.edit.description == "Edit order: 1 move"


def test_a_move_that_cannot_be_is_refused_in_a_sentence_and_changes_nothing(app):
    drawn = app.timeline.predicted
    assert move(app, "1B3", "1F3") == (
        "1B3 cannot stand before 1F4 on rank 1: 1B3 needs 2B3, which stands behind 2F4 on rank 2, which needs 1F4; "
        "keep it behind 1F4"
    )
    assert move(app, "0F0", by=-1).endswith("0F0 is the first of rank 0 already")
    assert move(app, "0B7", by=1).endswith("0B7 is the last of rank 0 already")
    assert app.under.said == ""
    assert app.timeline.predicted == drawn
    assert not app.under.editing.done
    assert app.panel.error == ""


def test_keys_move_by_a_slot_and_a_bar_let_go_behind_all_goes_to_the_end():
    app = ex.explore(forward=1.0, run_on_change=False, n_ranks=1, n_micro_batches=2, schedule="zb_h1")
    assert str(app.program) == "rank 0: 0F0 0I0 0W0 0F1 0I1 0W1"
    assert move(app, "0F1", by=-1).startswith("0F1 moved before 0W0 on rank 0: makespan stays 6 s")
    assert str(app.program) == "rank 0: 0F0 0I0 0F1 0W0 0I1 0W1"
    assert move(app, "0W0").startswith("0W0 moved to the end of rank 0")
    assert str(app.program) == "rank 0: 0F0 0I0 0F1 0I1 0W1 0W0"
    assert move(app, "0W0") == "0W0 stands there already"
    app.close()


def test_undo_and_redo_lead_through_all_orders(app):
    orders = [str(app.program)]
    for action, before in (("0F4", "0B0"), ("1F3", "1B0"), ("0F5", "0B1")):
        move(app, action, before)
        orders.append(str(app.program))
    assert len(set(orders)) == 4
    for order in orders[-2::-1]:
        app.under.undo.click()
        assert str(app.program) == order
    assert app.under.undo.disabled
    assert app.under.said.startswith("Undone: 0F4 moved before 0B0")
    for order in orders[1:]:
        app.under.redo.click()
        assert str(app.program) == order
    assert app.under.redo.disabled


def test_costs_leave_the_edited_order_and_other_numbers_leave_it_for_undo_to_find(app):
    move(app, "0F4", "0B0")
    edited = str(app.program)
    value(app, "latency", 2.0)
    assert str(app.program) == edited
    value(app, "n_micro_batches", 6)
    assert app.under.said == (
        "The edited order of 1f1b at 4 ranks and 8 micro-batches (1 move) was left for this one; Undo goes back to it"
    )
    assert str(app.program) == str(ex.schedule("1f1b", n_ranks=4, n_micro_batches=6))
    value(app, "schedule", "gpipe")
    app.under.undo.click()
    assert str(app.program) == edited
    assert "n_micro_batches=8" in repr(app)
    assert app.under.said == "Back at the edited order: 0F4 moved before 0B0 on rank 0"
    app.under.undo.click()
    assert str(app.program) == str(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8))


def test_an_edited_order_is_saved_as_a_schedule_and_listed(app, registered):
    move(app, "0F4", "0B0")
    edited = str(app.program)
    app.under.name.value = "My first!"
    app.under.save.click()
    registered.append("my_first")
    assert "schedule='my_first'" in repr(app)
    assert str(app.program) == edited
    assert str(ex.schedule("my_first", n_ranks=4, n_micro_batches=8)) == edited
    assert ("My first!", "my_first") in app.controls.fields["schedule"].control.options
    value(app, "n_micro_batches", 9)
    assert "exists for Micro-batches = 8 alone; got 9; try 8" in app.controls.fields["n_micro_batches"].explanation
    app.under.undo.click()
    assert "schedule='1f1b'" in repr(app)
    assert str(app.program) == edited


@pytest.mark.parametrize(
    ("typed", "message"),
    [("", "a name with a letter or a digit"), ("gpipe", "which is built in"), ("é" * 3, "a letter or a digit; got")],
)
def test_names_that_are_none_are_refused_under_the_picture(app, typed, message):
    move(app, "0F4", "0B0")
    app.under.name.value = typed
    app.under.save.click()
    assert message in app.under.refused
    assert app.under.editing.done == 1


def test_an_order_that_messages_would_hang_in_is_refused(app):
    value(app, "messages", "two_streams")  # each rank's sends in their order, and so its receives
    before, drawn = str(app.program), app.timeline.predicted
    assert "these wait for each other in a circle" in move(app, "1F1", "1F0")
    assert (str(app.program), app.timeline.predicted) == (before, drawn)
    assert not app.timeline.stale
    assert app.under.undo.disabled


def test_the_app_opens_with_moves_and_only_with_legal_ones():
    app = ex.explore(forward=1.0, run_on_change=False, moves=[("0F4", 4)])
    assert str(app.program).startswith("rank 0: 0F0 0F1 0F2 0F3 0F4 0B0")
    app.under.undo.click()
    assert str(app.program) == str(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8))
    app.close()
    with pytest.raises(CircularWaitError, match="0B4 cannot stand before"):
        ex.explore(moves=[("0B4", 0)])


def test_large_programs_are_not_edited_by_hand(app):
    app.under.edit.value = True
    assert app.timeline.editing
    value(app, "n_micro_batches", 64)
    assert app.under.edit.disabled
    assert "up to 500 actions; here are more" in app.under.edit.tooltip
    assert not app.timeline.editing


def test_what_the_browser_asks_for_is_done_for_the_picture_it_saw(app):
    trace = app.prediction.trace
    names = [str(action_of(trace, row)) for row in packed_order(trace.events).tolist()]
    wish = {"of": "predicted", "row": names.index("0F4"), "before": names.index("0B0"), "seq": app.timeline.seq}
    app.timeline._handle_custom_msg({"move": {**wish, "seq": wish["seq"] - 1}}, [])
    assert "got one of a picture long gone; try again" in app.under.refused
    app.under.edit.value = True
    app.timeline._handle_custom_msg({"move": wish}, [])
    assert app.under.said.startswith("0F4 moved before 0B0 on rank 0")
    for _ in range(2):  # keys pressed before the browser has painted the first of them
        key = {"of": "predicted", "row": names.index("0F5"), "by": -1, "seq": wish["seq"]}
        app.timeline._handle_custom_msg({"move": key}, [])
    assert app.under.said.startswith("0F5 moved before 0B0 on rank 0")
    app.timeline._handle_custom_msg({"undo": True}, [])
    app.timeline._handle_custom_msg({"undo": True}, [])
    app.timeline._handle_custom_msg({"undo": True}, [])
    assert app.under.said.startswith("Undone: 0F4 moved before 0B0")
    app.timeline._handle_custom_msg({"undo": True}, [])
    assert "can be undone; got none" in app.under.refused


# ── what if ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_show_the_difference_from_before_the_change(app):
    assert number(app, "makespan") == ("33 s", "of a step")
    value(app, "slow_rank", 1)
    value(app, "slow_factor", 2.0)
    seconds = app.prediction.trace.makespan
    assert seconds > 8 * 6  # what the slow rank alone takes
    shown, of = number(app, "makespan")
    assert shown == f"33 → {seconds:.4g} s ({seconds / 33 - 1:+.1%})"
    assert of == "of a step; before → now"
    value(app, "slow_factor", 1.0)
    assert number(app, "makespan") == ("33 s", "of a step")


def test_pinned_numbers_stay_until_they_are_let_go(app):
    app.under.what_if.pin.value = True
    assert app.under.what_if.pin.description == "Pinned: 33 s"
    assert number(app, "makespan") == ("33 s", "of a step, as pinned")
    value(app, "n_micro_batches", 4)  # (4 + 4 − 1) × 3
    value(app, "n_micro_batches", 16)  # (16 + 4 − 1) × 3
    assert number(app, "makespan") == ("33 → 57 s (+72.7%)", "of a step; pinned → now")
    app.under.what_if.pin.value = False
    assert number(app, "makespan")[1] == "of a step; before → now"
    assert app.under.what_if.pin.description == "Pin these numbers"


def test_the_selected_action_is_delayed(app):
    trace = app.prediction.trace
    last = [row for row in packed_order(trace.events) if trace.events.rank[row] == 0][-1]
    row = packed_order(trace.events).tolist().index(last)
    assert str(app.program.order(0)[-1]) == "0B7"
    app.timeline.selected = {"of": "predicted", "row": row}
    assert app.under.what_if.delay.description == "Delay 0B7 by, ms"
    app.under.what_if.delay.value = 5000.0  # ms, of the last of all
    assert app.controls.settings().late_action == "0B7"
    assert number(app, "makespan") == ("33 → 38 s (+15.2%)", "of a step; before → now")
    app.under.what_if.delay.value = 0.0
    assert number(app, "makespan")[0] == "33 s"


def test_only_what_computes_is_delayed(app):
    value(app, "latency", 1.0)
    trace = app.prediction.trace
    names = [str(action_of(trace, row)) for row in packed_order(trace.events).tolist()]
    app.timeline.selected = {"of": "predicted", "row": names.index("0SEND_F0")}
    assert app.under.what_if.delay.description == ""
    app.under.what_if.delay.value = 10.0
    assert app.controls.settings().late_action == ""


def test_a_long_micro_batch_and_the_warm_up_have_fields(app):
    value(app, "long_micro_batch", 7)
    value(app, "long_factor", 2.0)
    costs = app.prediction.trace.costs
    assert list(costs.micro_batch_factor) == [1] * 7 + [2]
    value(app, "long_factor", 1.0)
    value(app, "warm_up", 2)
    assert app.prediction.trace.peak_in_flight.tolist() == [7, 5, 3, 1]  # 2(P − 1 − r) + 1, as eager 1F1B
    value(app, "options", "warm_up=0")  # typed, so it goes first
    assert app.prediction.trace.peak_in_flight.tolist() == [1, 1, 1, 1]


def test_a_slider_that_moves_on_keeps_what_was_before_it():
    now = [0.0]
    reference = Reference(clock=lambda: now[0])
    first, second, third = (ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=m)) for m in (1, 2, 3))
    assert reference.show(first) is None
    for trace in (second, third):
        now[0] += 0.1
        reference.change("latency")
        assert reference.show(trace) == (first, "before")
    now[0] += 2.0
    reference.change("latency")  # after a rest
    assert reference.show(first) == (third, "before")
    reference.change("")  # two moves by hand
    assert reference.show(second) == (first, "before")
    reference.pin(True)
    reference.change("")
    assert reference.show(third) == (second, "pinned")
