"""Schedules that users register."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import explorer as ex
from explorer.errors import CircularWaitError, InputError, ProgramError, ScheduleError
from explorer.schedules import REGISTRY


def forwards_first(n_ranks: int, n_micro_batches: int, reverse: bool = False) -> list[str]:
    """All forwards, then all backwards."""
    batches = range(n_micro_batches)
    back = reversed(batches) if reverse else batches
    order = [f"F{m}" for m in batches] + [f"B{m}" for m in back]
    return [" ".join(f"{rank}{action}" for action in order) for rank in range(n_ranks)]


@pytest.fixture(autouse=True)
def left_as_it_was() -> Iterator[None]:
    before = set(REGISTRY)
    yield
    for name in set(REGISTRY) - before:
        ex.unregister(name)


def test_a_registered_schedule_is_listed_and_made_like_any_other() -> None:
    ex.register("mine", forwards_first, title="Mine", needs="any numbers")
    made, gpipe = (ex.schedule(name, n_ranks=3, n_micro_batches=4) for name in ("mine", "gpipe"))
    assert (str(made), made.name) == (str(gpipe), "mine")
    assert ex.simulate(made).makespan == 18.0  # GPipe, arXiv:1811.06965: (M+P−1)(F+B) = 6·3
    row = ex.schedules().loc["mine"]
    assert (row["title"], row["summary"], row["needs"]) == ("Mine", "All forwards, then all backwards.", "any numbers")


def test_further_arguments_are_options() -> None:
    assert ex.register("mine", forwards_first).options == ("reverse",)
    program = ex.schedule("mine", n_ranks=1, n_micro_batches=2, reverse=True)
    assert str(program) == "rank 0: 0F0 0F1 0B1 0B0"
    with pytest.raises(ScheduleError, match="mine takes n_ranks, n_micro_batches, n_chunks, reverse; got depth"):
        ex.schedule("mine", n_ranks=1, n_micro_batches=2, depth=1)


def test_a_function_that_takes_chunks_gets_them() -> None:
    def looped(*, n_ranks: int, n_micro_batches: int, n_chunks: int) -> ex.Program:
        return ex.schedule("forward_only", n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)

    ex.register("mine", looped, n_chunks=2, trains=False)
    assert ex.schedule("mine", n_ranks=2, n_micro_batches=2).n_stages == 4
    ex.register("mine", forwards_first)
    with pytest.raises(ScheduleError, match="takes no n_chunks, so n_chunks is 1; got 2; try 1") as caught:
        ex.schedule("mine", n_ranks=2, n_micro_batches=2, n_chunks=2)
    assert (caught.value.argument, caught.value.legal) == ("n_chunks", (1,))


def test_a_schedule_of_ones_own_is_replaced_and_removed_and_a_built_in_one_is_not() -> None:
    ex.register("mine", forwards_first)
    ex.register("mine", lambda n_ranks, n_micro_batches: ["0F0 0B0"], title="Another")
    assert (REGISTRY["mine"].title, list(REGISTRY)[-1]) == ("Another", "mine")
    ex.unregister("mine")
    assert "mine" not in REGISTRY
    for name, reason in (("mine", "which is none; yours are: none"), ("gpipe", "which is built in and stays")):
        with pytest.raises(InputError, match=f"only schedules of your own can be taken away; got '{name}', {reason}"):
            ex.unregister(name)
    with pytest.raises(InputError, match="got 'gpipe', which is built in; try 'my_gpipe'"):
        ex.register("gpipe", forwards_first)


def test_the_registry_itself_is_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        REGISTRY["mine"] = REGISTRY["gpipe"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "function", "rest", "message"),
    [
        ("My own!", forwards_first, {}, "1 to 40 lower-case letters, digits and _; got 'My own!'; try 'my_own'"),
        ("", forwards_first, {}, "got ''; try 'mine'"),
        (7, forwards_first, {}, "got '7'; try 'mine'"),
        ("<b>", forwards_first, {}, "got '<b>'; try 'b'"),
        ("mine", ["0F0"], {}, "a function of n_ranks and n_micro_batches; got list for mine; pass the function itself"),
        (
            "mine",
            lambda p, m: [],
            {},
            r"takes n_ranks and n_micro_batches; got \(p, m\) for mine; name its arguments so",
        ),
        ("mine", forwards_first, {"title": "a\nb"}, "title is one line of 1 to 80 characters; got 'a.+b'; shorten it"),
        ("mine", forwards_first, {"needs": ""}, "needs is one line of 1 to 80 characters; got ''"),
        ("mine", forwards_first, {"n_chunks": 2}, "and 1 for a function that takes no n_chunks; got 2; try 1"),
    ],
)
def test_register_refuses_what_cannot_be_a_schedule(name, function, rest, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        ex.register(name, function, **rest)
    assert "mine" not in REGISTRY


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: 1 / 0, ScheduleError, r"got ZeroDivisionError \(division by zero\) for n_ranks=2, n_micro_batches=1"),
        (lambda: 5, ScheduleError, "must give a Program, or a list of one order a rank; got int; mend it"),
        (lambda: "0F0 1F0", ScheduleError, "must give a Program, or a list of one order a rank; got str"),
        (lambda: ["0F0 0B0"], ProgramError, "needs one order a rank, 2 here; got 1"),
        (lambda: ["0F0 0B0", "1F0"], ProgramError, r"1B0 is missing from rank 1, .* in slot 1: 1F0 \[\+1B0\]"),
        (lambda: ["0F0 0B0", "1F7 1B0"], ProgramError, "micro-batches 0–0; got 1F7, which is outside; 1F0 is missing"),
        (lambda: ["0F0 0B0", "1B0 1F0"], CircularWaitError, "rank 1 slot 0 1B0 waits for 1F0"),
        (lambda: ["0F0 0B0", "1F0 huh"], InputError, "an action reads .*; got 'huh'"),
        (
            lambda: ex.schedule("gpipe", n_ranks=2, n_micro_batches=3),
            ScheduleError,
            "must give 2 ranks and 1 micro-batches, as asked for; got 2 and 3",
        ),
    ],
)
def test_what_a_function_gives_is_checked(made, error, message) -> None:  # type: ignore[no-untyped-def]
    ex.register("mine", lambda n_ranks, n_micro_batches: made())
    with pytest.raises(error, match=message):
        ex.schedule("mine", n_ranks=2, n_micro_batches=1)


def test_the_apps_menu_lists_it_when_it_opens() -> None:
    ex.register("mine", forwards_first, title="Forwards first")
    app = ex.explore(schedule="mine", n_ranks=2, n_micro_batches=2, forward=1.0, run_on_change=False)
    menu = app.controls.fields["schedule"].control
    assert ("Forwards first", "mine") in menu.options
    assert (menu.value, app.prediction.trace.makespan) == ("mine", 9.0)  # (M+P−1)(F+B) = 3·3


def test_an_order_without_end_is_refused() -> None:
    def endless(n_ranks: int, n_micro_batches: int) -> list[Iterator[str]]:
        return [itertools.cycle(["0F0"]) for _ in range(n_ranks)]

    ex.register("endless", endless)
    try:
        with pytest.raises(InputError, match=r"orders is finite; .* at most 10,000 slots; got more; try"):
            ex.schedule("endless", n_ranks=2, n_micro_batches=4)
    finally:
        ex.unregister("endless")
