"""How fast sends and receives are added, their order checked, and what they do simulated: 194,560 slots."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import explorer as ex

pytestmark = pytest.mark.benchmark


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call, after one that does not count."""
    work()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def test_messages_of_64_ranks_are_added_and_checked_in_about_a_second(table: Callable[..., None]) -> None:
    program = ex.schedule("1f1b", n_ranks=64, n_micro_batches=512)
    placed = ex.add_messages(program, receives="front_loaded")
    hanging = ex.add_messages(program)
    assert placed.n_slots == hanging.n_slots == 2 * 64 * 512 + 4 * 63 * 512
    parts = {
        "add s": seconds(lambda: ex.add_messages(program)),
        "add front-loaded s": seconds(lambda: ex.add_messages(program, receives="front_loaded")),
        "check s": seconds(lambda: ex.check_messages(placed, "ordered")),
        "check, name and cure s": seconds(lambda: ex.check_messages(hanging, "ordered")),
        "simulate s": seconds(lambda: ex.simulate(placed, messages="ordered")),
    }
    table("messages of 1f1b 64×512", parts)
    assert parts["add front-loaded s"] + parts["check s"] < 2.0
