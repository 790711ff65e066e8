"""Every schedule as the literal picture its source draws, F = 1 and B = 2 (or B = 1 where said)."""

from __future__ import annotations

import explorer as ex
from tests.pictures import drawn, picture


def _picture(name: str, *, forward: float = 1, backward: float = 2, **numbers: int) -> str:
    return picture(ex.simulate(ex.schedule(name, **numbers), ex.Costs(forward=forward, backward=backward)))


def test_naive_runs_one_micro_batch_at_a_time() -> None:
    # GPipe, arXiv:1811.06965, figure 2(b)
    assert _picture("naive", n_ranks=3, n_micro_batches=2, backward=1) == drawn("""
        |F0 . . . .B0F1 . . . .B1|
        | .F0 . .B0 . .F1 . .B1 .|
        | . .F0B0 . . . .F1B1 . .|
    """)


def test_gpipe_fills_then_drains() -> None:
    # GPipe, arXiv:1811.06965, figure 2(c), with micro-batches backward in the order they came
    assert _picture("gpipe", n_ranks=3, n_micro_batches=4, backward=1) == drawn("""
        |F0F1F2F3 . . . .B0B1B2B3|
        | .F0F1F2F3 . .B0B1B2B3 .|
        | . .F0F1F2F3B0B1B2B3 . .|
    """)


def test_1f1b_alternates_after_its_warm_up() -> None:
    # arXiv:2104.04473, figure 3 lower half, here 4 ranks × 4 micro-batches, backward twice as long
    assert _picture("1f1b", n_ranks=4, n_micro_batches=4) == drawn("""
        |F0F1F2F3 . . . . . .B0 - .B1 - .B2 - .B3 -|
        | .F0F1F2 . . . .B0 -F3B1 - .B2 - .B3 - . .|
        | . .F0F1 . .B0 -F2B1 -F3B2 - .B3 - . . . .|
        | . . .F0B0 -F1B1 -F2B2 -F3B3 - . . . . . .|
    """)


def test_interleaved_1f1b_goes_round_in_groups() -> None:
    # arXiv:2104.04473, figure 4 in small: 2 ranks × 2 chunks; each chunk is run for a group of P micro-batches
    numbers = {"n_ranks": 2, "n_micro_batches": 2, "n_chunks": 2}
    assert str(ex.schedule("interleaved_1f1b", **numbers)).split("\n") == [
        "rank 0: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1",
        "rank 1: 1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1",
    ]
    assert _picture("interleaved_1f1b", backward=1, **numbers) == drawn("""
        |F0F1F0F1 .B0 .B1B0B1|
        | .F0F1F0B0F1B1B0B1 .|
    """)


def test_forward_only_streams() -> None:
    assert _picture("forward_only", n_ranks=3, n_micro_batches=4) == drawn("""
        |F0F1F2F3 . .|
        | .F0F1F2F3 .|
        | . .F0F1F2F3|
    """)
