"""Programs: read, written, and refused with the place named."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.core import Kind, RankOrder, Waits
from explorer.errors import CircularWaitError, InputError, ProgramError

TWO = ex.Placement.looped(2)
GOOD = ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]


# what is wrong with torch 2.13's own order: F0 is missing, F8 is none of 8 micro-batches, B0 comes before any F0
TORCHS_1F1B = (
    r"micro-batches 0–7; got 3F8, which is outside; 3F0 is missing; 3B0 in slot 1 so comes before its forward; "
    r"number the forwards 0–7 \(rank 3, slot 14: … 3B5 3F7 3B6 \[3F8\] 3B7\)"
)


def program(*orders: str, m: int = 2, placement: ex.Placement = TWO, **rest: object) -> ex.Program:
    return ex.Program.from_orders("own", placement, m, list(orders), **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["2F5", "0B0", "3I1", "3W1", "1F2.3", "0R1", "1SEND_F4", "2RECV_B0", "3U", "0G"])
def test_action_text_and_parse_are_each_others_inverse(text: str) -> None:
    assert str(ex.Action.parse(text)) == text


@pytest.mark.parametrize("text", ["", "F0", "0X1", "0F1.", "-1F0", "0F-1", "0f1", "<img>"])
def test_action_parse_refuses_what_is_no_action(text: str) -> None:
    with pytest.raises(InputError, match="an action reads <stage><kind><micro-batch>, like 2F5; got"):
        ex.Action.parse(text)


def test_program_reads_as_it_was_written() -> None:
    own = program(*GOOD)
    assert str(own) == "rank 0: 0F0 0F1 0B0 0B1\nrank 1: 1F0 1B0 1F1 1B1"
    assert own.order(1)[1] == ex.Action(ex.Kind.B, 1, 0)
    assert (own.n_actions, own.n_slots, own.has_backward, own.splits_backward) == (8, 8, True, False)
    assert ex.check(own) is own


def test_program_from_columns_equals_the_one_from_orders() -> None:
    kinds = [np.array([Kind.F, Kind.F, Kind.B, Kind.B], np.int8), np.array([Kind.F, Kind.B] * 2, np.int8)]
    micro_batch = [np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])]
    orders = [RankOrder(kinds[r], np.full(4, r), micro_batch[r]) for r in range(2)]
    assert str(ex.Program.from_columns("own", TWO, 2, orders)) == str(program(*GOOD))


def test_overlap_is_one_slot_of_two_actions() -> None:
    both = ex.Overlap([ex.Action.parse("0F1"), ex.Action.parse("0B0")])
    own = ex.Program.from_orders("own", ex.Placement.looped(1), 2, [["0F0", both, "0B1"]])
    assert (own.n_slots, own.n_actions) == (3, 4)
    assert own.order(0)[1] == both
    assert str(both) == "(0F1;0B0)"


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (
            ["0F0 0F1 0B0", "1F0 1B0 1F1 1B1"],
            r"0B1 is missing from rank 0, which has 3 slots; add it there, such as in slot 3: 0F0 0F1 0B0 \[\+0B1\]",
        ),
        (["0F1 0B0 0B1", GOOD[1]], r"0F0 is missing from rank 0, .* in slot 0: \[\+0F0\] 0F1 0B0 0B1"),
        (
            ["0F0 0F1 0F1 0B0 0B1", GOOD[1]],
            r"already in slot 1 of rank 0; leave one out \(rank 0, slot 2: 0F0 0F1 \[0F1\] 0B0 0B1\)",
        ),
        (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1 0F1"], "0F1 belongs on rank 0; move it there"),
        (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1 1W0"], "got 1W0 again: 1B0 in slot 1 of rank 1 is a part of the same"),
        (["0F0 0F1 0I0 0B1", GOOD[1]], "0W0 is missing from rank 0"),
        (["0F0 0F1 0W0 0B1", GOOD[1]], "0I0 is missing from rank 0"),
        (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 2B1"], r"stages 0–1 and micro-batches 0–1; got 2B1, which is outside"),
        (["0F0 0F1 0B0 0B1", "1F0.1 1B0 1F1 1B1"], "got 1F0.1, which is outside"),
        (["0F0 0F1 0B0 0B1 1U", GOOD[1]], "1U belongs on a rank that holds stage 1"),
    ],
)
def test_check_names_what_is_wrong_and_where(orders: list[str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        ex.check(program(*orders))


def test_check_needs_an_order_for_each_rank() -> None:
    with pytest.raises(ProgramError, match="needs one order a rank, 2 here; got 1"):
        program("0F0")


def test_check_refuses_torchs_own_1f1b_table() -> None:
    # torch 2.13 get_schedule_ops("1F1B", pp_degree=4, num_microbatches=8): its last rank begins with F1 and invents F8
    ours = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    orders = [[str(action) for action in ours.order(rank)] for rank in range(4)]
    orders[3] = [f"3{kind}{m + (kind == 'F')}" for m in range(8) for kind in "FB"]
    exported = ex.Program.from_orders("torch 1F1B", ours.placement, 8, orders)
    with pytest.raises(ProgramError, match=TORCHS_1F1B):
        ex.check(exported)


def test_check_names_the_chain_of_a_circle() -> None:
    # each rank waits for what the other would do next
    with pytest.raises(CircularWaitError) as caught:
        ex.check(program("0F0 0B0 0F1 0B1", "1F1 1F0 1B0 1B1"))
    assert caught.value.chain == ((0, 1, "0B0"), (1, 0, "1F1"))
    assert "rank 0 slot 1 0B0 waits for 1B0 → rank 1 slot 0 1F1 waits for 0F1" in str(caught.value)
    assert "rank 1: [1F1] 1F0 1B0 1B1" in str(caught.value)


def test_check_finds_an_action_before_what_it_needs_on_its_own_rank() -> None:
    with pytest.raises(CircularWaitError, match="rank 1 slot 0 1B0 waits for 1F0"):
        ex.check(program("0F0 0F1 0B0 0B1", "1B0 1F0 1F1 1B1"))


def test_check_looks_at_waits_and_capacities() -> None:
    for waits, message in (
        (Waits(np.array([0]), np.array([99]), np.array([0.0])), "a wait names actions 0–7; got 0 and 99"),
        (Waits(np.array([0]), np.array([1]), np.array([-1.0])), "lag of a wait is 0 seconds or more; got -1"),
        (Waits(np.array([0]), np.array([1, 2]), np.array([0.0])), "three columns of equal length; got 1, 2 and 1"),
    ):
        with pytest.raises(ProgramError, match=message):
            ex.check(program(*GOOD, waits=waits))
    with pytest.raises(ProgramError, match=r"capacities are 1 counts of 0 or more.*got \[1, 2\]"):
        ex.check(program(*GOOD, capacities=np.array([1, 2])))
    circle = Waits(np.array([7]), np.array([0]), np.array([0.0]))
    with pytest.raises(CircularWaitError, match="0F0 waits for 1B1"):
        ex.check(program(*GOOD, waits=circle))


def test_messages_reductions_and_updates_take_their_place() -> None:
    own = program(
        "0F0 0SEND_F0 0RECV_B0 0B0 0G 0U", "1RECV_F0 1F0 1B0 1SEND_B0 1U", m=1
    )  # fmt: skip
    trace = ex.simulate(own, ex.Costs(forward=1, backward=2, optimizer=0.5, latency=0.25))
    start = dict(zip([str(own.action(i)) for i in range(own.n_actions)], trace.events.start.tolist(), strict=False))
    # F 0–1, its message to 1.25, F 1.25–2.25, B to 4.25, back at 4.5, B to 6.5; the optimizer counts in no measure
    assert (start["1F0"], start["0B0"], start["0U"], start["1U"]) == (1.25, 4.5, 6.5, 4.25)
    assert trace.makespan == 6.5


def test_bidirectional_placement_has_two_copies_of_each_stage() -> None:
    both_ways = ex.Placement.bidirectional(4, 8)
    assert both_ways.weight_copies.tolist() == [2, 2, 2, 2]
    assert both_ways.rank_of([0, 0, 3], [0, 7, 7]).tolist() == [0, 3, 0]
    assert both_ways.holds([0, 1], [3, 3]).tolist() == [True, False]
    assert ex.Placement.v_shaped(3).routes.tolist() == [[0, 1, 2, 2, 1, 0]]
    assert ex.Placement.looped(2, 2).routes.tolist() == [[0, 1, 0, 1]]


def test_a_bidirectional_program_is_checked_and_simulated_like_any_other() -> None:
    # two micro-batches meeting each other on two ranks: both ranks begin at once
    own = program(
        "0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1", placement=ex.Placement.bidirectional(2, 2)
    )  # fmt: skip
    trace = ex.simulate(own, ex.Costs(forward=1, backward=2))
    assert trace.makespan == 6.0
    assert trace.bubble_ratio == 0.0


@pytest.mark.parametrize(
    ("routes", "route_of", "message"),
    [
        (np.zeros((0, 2), np.int32), None, "routes must be of shape"),
        (np.array([[0, 5]], np.int32), None, "routes must name ranks 0 to 1"),
        (np.array([[0, 1], [1, 0]], np.int32), None, "2 routes need route_of"),
        (np.array([[0, 1]], np.int32), np.array([3], np.int32), "route_of must name routes 0 to 0"),
    ],
)
def test_placement_refuses_ranks_and_routes_that_are_not_there(routes, route_of, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        ex.Placement(2, routes, route_of)


def test_check_refuses_numbers_that_promise_more_than_there_is() -> None:
    # before any table of that size is made
    with pytest.raises(
        ProgramError, match="2 stages and 1,000,000,000 micro-batches make at least 2,000,000,000 actions"
    ):
        ex.check(program(*GOOD, m=10**9))


@pytest.mark.parametrize("text", ["(2F1;1B0)", "(0SEND_F0;0RECV_B1;0F2)"])
def test_slots_of_several_actions_are_read_from_text(text: str) -> None:
    own = program(text, f"{text}OVERLAP_F_B", m=3)  # the ending is torch's
    assert [str(own.order(rank)[0]) for rank in (0, 1)] == [text, text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((7, TWO, 2, GOOD), "name is a text of at most 200 characters; got 7; try 'own'"),
        (("own", 2, 2, GOOD), r"placement is a Placement; got 2; try explorer\.Placement\.looped"),
        (("own", TWO, 2.5, GOOD), "n_micro_batches is a whole number from 1 .*; got 2.5; try 4"),
        (("own", TWO, True, GOOD), "n_micro_batches is a whole number .*; got True"),
        (("own", TWO, 2, "0F0"), "orders is a list of one order a rank; got '0F0'"),
        (("own", TWO, 2, 5), "orders is a list of one order a rank; got 5"),
        (("own", TWO, 2, [3, 4]), "orders is one order a rank, each a text or a list of actions; got 3"),
        (("own", TWO, 2, [[3], [4]]), "orders is made of Actions, Overlaps and texts; got 3"),
        (("own", TWO, 2, [[()], []]), "orders is made of Actions, Overlaps and texts; got tuple"),
        (
            ("own", TWO, 2, [[ex.Action(Kind.F, 0, 2**40)], []]),
            r"whole numbers below 2³¹; got \(<Kind.F: 0>, 0, 1099511627776,",
        ),
        (("own", TWO, 2, [[ex.Action(Kind.F, 0.5)], []]), r"whole numbers below 2³¹; got \(<Kind.F: 0>, 0.5,"),
        (("own", TWO, 2, [[ex.Action(99, 0, 0)], []]), r"made of actions with a Kind .*; got \(99, 0, 0,"),
        (("own", TWO, 2, [[ex.Action("F", 0, 0)], []]), r"made of actions with a Kind .*; got \('F', 0, 0,"),
        (("own", TWO, 2, ["0F99999999999", ""]), "an action reads .* got '0F99999999999'; .* up to nine digits"),
    ],
)
def test_from_orders_refuses_arguments_of_another_kind(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ex.Program.from_orders(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ex.Placement.looped("4"), "n_ranks is a whole number of at least 1; got '4'; try 1"),
        (lambda: ex.Placement.looped(2, 0), "n_chunks is a whole number of at least 1; got 0; try 1"),
        (lambda: ex.Placement.bidirectional(2, None), "n_micro_batches is a whole number .* got NoneType"),
        (lambda: ex.Placement.v_shaped(1.5), "n_ranks is a whole number of at least 1; got 1.5"),
        (lambda: ex.Placement.looped(10**6, 10**6), "at most 20,000,000 stages; got 1,000,000,000,000; try fewer"),
        (
            lambda: ex.Placement.bidirectional(2, 10**9),
            "at most 20,000,000 micro-batches; got 1,000,000,000; try fewer",
        ),
        (lambda: ex.Placement(2, [[0, 1]]), "routes must be a numpy array of whole numbers; got list"),
        (lambda: ex.Placement(2, np.zeros((1, 2))), "routes must be a numpy array of whole numbers; got float64"),
        (lambda: ex.Placement(2, np.zeros((1, 2), int), 0), "route_of must be a numpy array .* got int"),
        (
            lambda: ex.Placement(2, np.zeros((1, 2), int), np.zeros((1, 1), int)),
            r"route_of must be of shape \(n_micro_batches,\); got \(1, 1\)",
        ),
    ],
)
def test_placement_refuses_arguments_of_another_kind(make, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        make()


def test_check_refuses_routes_for_another_number_of_micro_batches() -> None:
    with pytest.raises(ProgramError, match="one for each of the 3 micro-batches; got 2; make it for 3"):
        ex.check(program("0F0 1F1", "0F1 1F0", m=3, placement=ex.Placement.bidirectional(2, 2)))


def test_to_frame_has_a_row_an_action_and_counts_slots_by_rank() -> None:
    frame = program("0F0 (0F1;0B0) 0B1", GOOD[1]).to_frame()
    assert list(frame.columns) == ["rank", "slot", "kind", "stage", "micro_batch", "segment", "peer"]
    assert frame[frame["rank"] == 0]["slot"].tolist() == [0, 1, 1, 2]
    assert frame["kind"].astype(str).tolist() == ["F", "F", "B", "B", "F", "B", "F", "B"]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ({"waits": 5}, "waits is after, before and lag as columns: .*; got 5; try"),
        ({"waits": Waits(["a"], [1], [0.0])}, "waits is .*; got <U1, int64, float64; try"),  # type: ignore[arg-type]
        ({"waits": Waits(np.array([0.5]), np.array([1]), np.array([0.0]))}, "waits is .*; got float64, int64, float64"),
        ({"capacities": "a"}, "capacities is one whole number between each stage and the next; got 'a'"),
        ({"capacities": np.array([0.5])}, "capacities is one whole number .*; got ndarray"),
        ({"n_segments": "2"}, "n_segments is a whole number .*; got '2'; try 1"),
    ],
)
def test_from_orders_refuses_extras_of_another_kind(rest: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        program(*GOOD, **rest)


def test_lists_do_for_waits_and_capacities() -> None:
    own = program(*GOOD, waits=Waits([1], [4], [0.5]), capacities=[1])  # type: ignore[arg-type]
    assert ex.check(own) is own


def test_a_rank_that_is_not_there_has_no_order() -> None:
    for rank in (2, -1, "0"):
        with pytest.raises(InputError, match=f"rank is a whole number from 0 to 1; got {rank!r}; try 0"):
            program(*GOOD).order(rank)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("orders", "cure"),
    [
        (("0B0 0F0 0F1 0B1", GOOD[1]), r"on rank 0, try 0F0 before 0B0 \(rank 0: \[0B0\] 0F0 0F1 0B1\)"),
        (
            ("0F0 0B0 0F1 0B1", "1F1 1F0 1B0 1B1"),
            r"on rank 0, try 0F1 before 0B0 \(rank 0: 0F0 \[0B0\] 0F1 0B1; rank 1",
        ),
        ((GOOD[0], "(1F0;1B0) 1F1 1B1"), r"waits for \(1F0;1B0\); give the parts of \(1F0;1B0\) slots of their own"),
    ],
)
def test_check_names_what_would_open_a_circle(orders: tuple[str, ...], cure: str) -> None:
    with pytest.raises(CircularWaitError, match=cure):
        ex.check(program(*orders))


def test_a_long_circle_is_told_in_brief_and_kept_whole() -> None:
    # the first of twelve stages waits for the last, which waits for the one before it, and so on
    waits = Waits(np.array([11]), np.array([0]), np.array([0.0]))
    orders = [f"{rank}F0" for rank in range(12)]
    with pytest.raises(
        CircularWaitError, match=r"… \(12 in all\); leave out one of the program's further waits"
    ) as caught:
        ex.check(program(*orders, m=1, placement=ex.Placement.looped(12), waits=waits))
    assert len(caught.value.chain) == 12
    assert str(caught.value).count("waits for") == 8


def test_a_send_without_its_receive_is_refused() -> None:
    with pytest.raises(ProgramError, match="every message has a send and a receive; 0SEND_F0 has no receive; add its"):
        ex.check(program("0F0 0SEND_F0", "1F0", m=1))
