"""A program registered as a schedule: there for its own numbers alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import explorer as ex
from explorer.errors import CircularWaitError, ScheduleError


@pytest.fixture
def kept() -> Iterator[ex.Program]:
    program = ex.move(ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=4), "0F3", slot=3)
    ex.register("kept", program, title="Mine")
    yield program
    ex.unregister("kept")


def test_a_program_is_given_for_its_own_numbers(kept: ex.Program) -> None:
    assert ex.schedule("kept", n_ranks=2, n_micro_batches=4) is kept
    listed = ex.schedules().loc["kept"]
    assert (listed["title"], listed["n_chunks"]) == ("Mine", 2)
    assert listed["needs"] == "n_ranks = 2 and n_micro_batches = 4 alone"


@pytest.mark.parametrize(
    ("numbers", "argument", "there"),
    [
        ({"n_ranks": 3, "n_micro_batches": 4}, "n_ranks", 2),
        ({"n_ranks": 2, "n_micro_batches": 5}, "n_micro_batches", 4),
        ({"n_ranks": 2, "n_micro_batches": 4, "n_chunks": 1}, "n_chunks", 2),
    ],
)
def test_other_numbers_are_refused_with_its_own(
    kept: ex.Program, numbers: dict[str, int], argument: str, there: int
) -> None:
    with pytest.raises(ScheduleError, match=f"exists for {argument} = {there} alone; got .*; try {there}") as caught:
        ex.schedule("kept", **numbers)
    assert (caught.value.argument, caught.value.legal) == (argument, (there,))


def test_a_program_that_hangs_is_not_registered() -> None:
    hangs = ex.Program.from_orders("hangs", ex.Placement.looped(1), 1, ["0B0 0F0"])
    with pytest.raises(CircularWaitError, match="0B0 waits for 0F0"):
        ex.register("hangs", hangs)
