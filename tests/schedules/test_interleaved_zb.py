"""Interleaved zero bubble: published replays, picture, refusals; the order itself is compared in test_against_torch."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import ScheduleError
from tests.pictures import drawn, picture


def test_its_picture_on_two_ranks() -> None:
    program = ex.schedule("interleaved_zb", n_ranks=2, n_micro_batches=2)
    assert picture(ex.simulate(program)) == drawn("""
        |F0F1F0F1 .I0W0I1W1I0W0I1W1|
        | .F0F1F0I0F1I1W0I0W1I1W0W1|
    """)


@pytest.mark.parametrize(
    ("p", "v", "m", "makespan", "peak"),
    [(2, 2, 4, 25, 4), (2, 2, 8, 49, 4), (3, 2, 6, 38, 6), (4, 2, 10, 63, 9), (4, 2, 16, 99, 8), (4, 4, 8, 99, 16)],
)
def test_torchs_order_takes_this_long(p: int, v: int, m: int, makespan: float, peak: int) -> None:
    # torch 2.13's ScheduleInterleavedZeroBubble replayed with F = I = W = 1: every rank idles P−1
    trace = ex.simulate(ex.schedule("interleaved_zb", n_ranks=p, n_micro_batches=m, n_chunks=v))
    assert trace.makespan == makespan
    assert trace.idle_per_rank.tolist() == [p - 1] * p
    assert trace.peak_in_flight.tolist() == [peak] * p


def test_rounds_must_be_equal() -> None:
    with pytest.raises(ScheduleError, match=r"= 2 of them, so n_micro_batches is a multiple of 2; got 9; try 8 or 10"):
        ex.schedule("interleaved_zb", n_ranks=4, n_micro_batches=9)
