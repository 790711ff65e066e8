"""Closed forms, pictures and refusals of the schedules that are written down without a search."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import explorer as ex
from explorer.errors import ProgramError, ScheduleError
from explorer.schedules import REGISTRY
from tests.pictures import drawn, picture

RANKS = (2, 3, 4, 5, 7, 8, 16)
MICRO_BATCHES = (1, 7, 16, 64)


def run(name: str, forward: float, backward: float, latency: float = 0.0, **numbers: Any) -> ex.Trace:
    return ex.simulate(ex.schedule(name, **numbers), ex.Costs(forward=forward, backward=backward, latency=latency))


def drawing(name: str, **numbers: Any) -> str:
    return picture(run(name, 1, 1, **numbers))


# ── closed forms ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("p", RANKS)
def test_eager_1f1b_takes_as_long_as_gpipe(p: int) -> None:
    # arXiv:2211.05322: messages hide behind the forwards done ahead, up to half of F + B each
    for m, latency in itertools.product(MICRO_BATCHES, (0.0, 2.5)):
        makespan = run("eager_1f1b", 2, 3, latency, n_ranks=p, n_micro_batches=m).makespan
        assert makespan == pytest.approx((m + p - 1) * 5 + 2 * (p - 1) * latency)


@pytest.mark.parametrize("p", RANKS)
def test_looped_bfs_takes_what_its_formula_says(p: int) -> None:
    # arXiv:2211.05953: as gpipe over v rounds, each at least as long as the loop; for M ≥ P a bubble of (P−1)(F+B)/v
    for m, v in itertools.product(MICRO_BATCHES, (1, 3)):
        makespan = run("looped_bfs", 1, 2, n_ranks=p, n_micro_batches=m, n_chunks=v).makespan
        assert makespan == (v * max(m, p) + min(m, p) - 1) * 3


@pytest.mark.parametrize("p", RANKS)
def test_seq1f1b_divides_the_bubble_by_its_segments(p: int) -> None:
    # arXiv:2406.03488: (M·k + P − 1)(f + b)
    for m, k in itertools.product(MICRO_BATCHES, (2, 5)):
        assert run("seq1f1b", 2, 3, n_ranks=p, n_micro_batches=m, n_segments=k).makespan == (m * k + p - 1) * 5


@pytest.mark.parametrize("p", RANKS)
def test_gis_idles_as_its_paper_says_for_every_group_size(p: int) -> None:
    # arXiv:2503.01328: 2(P−1) + (P−g)(v−1) for F = I = W = 1 and M a multiple of g
    for g, v in itertools.product(range((p + 1) // 2, p + 1), (1, 2)):
        for m in (g, 64 // g * g):
            trace = run("gis", 1, 2, n_ranks=p, n_micro_batches=m, n_chunks=v, group_size=g)
            np.testing.assert_allclose(trace.idle_per_rank, 2 * (p - 1) + (p - g) * (v - 1))


@pytest.mark.parametrize("p", RANKS)
def test_group_sizes_change_what_is_held_and_not_the_bubble(p: int) -> None:
    # Llama 3, arXiv:2407.21783, section 3.3.2; group_size P is arXiv:2104.04473, section 2.2.2
    for group, v in itertools.product((p, p + 1, 2 * p), (2, 3)):
        program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=3 * group, n_chunks=v, group_size=group)
        trace = ex.simulate(program, ex.Costs(forward=1, backward=2))
        np.testing.assert_allclose(trace.idle_per_rank, (p - 1) * 3)
        assert trace.peak_in_flight.tolist() == [2 * (p - 1 - r) + (v - 1) * group + 1 for r in range(p)]


@pytest.mark.parametrize("p", [2, 4, 6, 8, 16])
@pytest.mark.parametrize("units", [1, 2, 3])
def test_chimera_takes_what_its_formula_says(p: int, units: int) -> None:
    # arXiv:2107.06925, table 2, over whole units; with B = 2F each unit leaves P − 2 of its own
    m = units * p
    for replicas in (n for n in range(2, p + 1, 2) if p % n == 0):
        alike = run("chimera", 1, 1, n_ranks=p, n_micro_batches=m, n_replicas=replicas)
        assert alike.makespan == 2 * m + 2 * p // replicas - 2
        assert alike.peak_in_flight.min() == p - p // replicas + 1
        assert alike.peak_in_flight.max() == p
    assert run("chimera", 1, 2, n_ranks=p, n_micro_batches=m).makespan == 3 * m + (units + 1) * (p - 2)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("v", [2, 4, 6])
def test_hanayo_takes_what_its_formula_says(p: int, units: int, v: int) -> None:
    m = units * p
    alike = run("hanayo", 1, 1, n_ranks=p, n_micro_batches=m, n_chunks=v)
    assert alike.makespan == 2 * v * m + 2 * (p - 1)
    assert alike.peak_in_flight.tolist() == [(v - 1) * p + rank + 1 for rank in range(p)]
    twice = run("hanayo", 1, 2, n_ranks=p, n_micro_batches=m, n_chunks=v)
    assert twice.makespan == 3 * v * m + 2 * (p - 1) * (units + 1)


def test_depth_first_is_megatrons_order() -> None:
    # arXiv:2211.05953 takes it from Megatron-LM
    numbers = {"n_ranks": 4, "n_micro_batches": 8, "n_chunks": 3}
    one, other = (ex.schedule(name, **numbers) for name in ("depth_first", "interleaved_1f1b"))
    assert str(one) == str(other)


@pytest.mark.parametrize("name", ["pipedream", "pipedream_2bw"])
def test_asynchronous_schedules_have_the_order_of_1f1b(name: str) -> None:
    numbers = {"n_ranks": 4, "n_micro_batches": 9}
    assert str(ex.schedule(name, **numbers)) == str(ex.schedule("1f1b", **numbers))
    assert REGISTRY[name].copies_per_rank(4).max() > 1


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), st.integers(1, 12))
def test_any_staircase_of_warm_ups_can_finish(steps: list[int], m: int) -> None:
    first = sorted(steps, reverse=True)
    program = ex.schedule("1f1b", n_ranks=len(first), n_micro_batches=m, warm_up=first)
    peaks = ex.simulate(program).peak_in_flight
    assert (peaks <= np.minimum(np.array(first) + 1, m)).all()


@given(st.integers(2, 6), st.integers(1, 30), st.integers(2, 3), st.integers(1, 30))
def test_every_group_size_that_is_taken_can_finish(p: int, m: int, v: int, group: int) -> None:
    numbers: dict[str, Any] = {"n_ranks": p, "n_micro_batches": m, "n_chunks": v, "group_size": group}
    for _ in range(3):
        try:
            program = ex.schedule("interleaved_1f1b", **numbers)
        except ScheduleError as error:
            numbers[error.argument] = error.legal[0]
        else:
            assert ex.check(program) is program
            return
    raise AssertionError(f"following its advice leads nowhere: {numbers}")


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (3, 4, 2)])
def test_segments_take_costs_of_every_shape(shape: tuple[int, ...]) -> None:
    program = ex.schedule("seq1f1b", n_ranks=3, n_micro_batches=4, n_segments=2)
    costs = ex.Costs(forward=np.full(shape, 1.0), backward=np.full(shape, 2.0))
    assert ex.simulate(program, costs).makespan == (4 * 2 + 3 - 1) * 3


@pytest.mark.parametrize("versions", [[1], [2, 1, 0, 1], [[1, 1, 1, 1]], [1.5] * 4])
def test_versions_of_the_weights_are_one_count_a_rank(versions: list[Any]) -> None:
    program = replace(ex.schedule("1f1b", n_ranks=4, n_micro_batches=4), weight_versions=np.array(versions))
    with pytest.raises(ProgramError, match="weight_versions are 4 whole numbers of at least 1, one a rank; got"):
        ex.simulate(program)


def test_blocking_sends_hold_a_fast_stage_back() -> None:
    # stages of 1, 4 and 1: with no room between them the first waits for the second to take each micro-batch
    program = ex.schedule("forward_only", n_ranks=3, n_micro_batches=4, dialect="deepspeed")
    assert picture(ex.simulate(program, ex.Costs(forward=[1, 4, 1]))) == drawn("""
        |F0F1 . . .F2 . . .F3 . . . . . . . .|
        | .F0 - - -F1 - - -F2 - - -F3 - - - .|
        | . . . . .F0 . . .F1 . . .F2 . . .F3|
    """)


# ── pictures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_chimera_runs_both_ways_at_once() -> None:
    # arXiv:2107.06925: 4 ranks × 4 micro-batches, 0 and 1 from the first rank, 2 and 3 from the last
    assert drawing("chimera", n_ranks=4, n_micro_batches=4) == drawn("""
        |F0F1 .F2B2F3B3B0 .B1|
        | .F0F2F1F3B2B0B3B1 .|
        | .F2F0F3F1B0B2B1B3 .|
        |F2F3 .F0B0F1B1B2 .B3|
    """)


def test_hanayo_turns_at_the_last_rank() -> None:
    # stages 0 and 3 on rank 0, 1 and 2 on rank 1: chimera's picture of two ranks, folded
    assert drawing("hanayo", n_ranks=2, n_micro_batches=2) == drawn("""
        |F0F1 .F0B0F1B1B0 .B1|
        | .F0F0F1F1B0B0B1B1 .|
    """)


def test_eager_1f1b_begins_with_twice_the_forwards() -> None:
    assert drawing("eager_1f1b", n_ranks=3, n_micro_batches=6) == drawn("""
        |F0F1F2F3F4B0F5B1 .B2 .B3 .B4 .B5|
        | .F0F1F2B0F3B1F4B2F5B3 .B4 .B5 .|
        | . .F0B0F1B1F2B2F3B3F4B4F5B5 . .|
    """)


def test_looped_bfs_runs_each_stage_at_a_stretch() -> None:
    assert drawing("looped_bfs", n_ranks=2, n_micro_batches=3) == drawn("""
        |F0F1F2F0F1F2 . .B2B1B0B2B1B0|
        | .F0F1F2F0F1F2B2B1B0B2B1B0 .|
    """)


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "numbers", "message", "argument", "legal"),
    [
        ("chimera", {"n_ranks": 5}, "n_ranks to be even; got 5; try 4 or 6", "n_ranks", (4, 6)),
        ("chimera", {"n_replicas": 3}, "divisor of n_ranks; got 3 and 4; try 2 or 4", "n_replicas", (2, 4)),
        ("hanayo", {"n_chunks": 3}, "n_chunks to be even, two a wave; got 3; try 2 or 4", "n_chunks", (2, 4)),
        ("hanayo", {"n_chunks": 1}, "n_chunks to be even, two a wave; got 1; try 2", "n_chunks", (2,)),
        ("gis", {"group_size": 1}, "group_size of at least 2; got 1; try 2", "group_size", (2,)),
        ("gis", {"group_size": 9}, "group_size of at most 4; got 9; try 4", "group_size", (4,)),
        ("gis", {"group_size": 2.5}, "group_size is a whole number", "group_size", (1,)),
        ("seq1f1b", {"n_segments": 0}, "n_segments is a whole number", "n_segments", (1,)),
        ("seq1f1b", {"n_segments": 10**7}, "n_segments of at most 125000; got 10000000", "n_segments", (125000,)),
        (
            "depth_first",
            {"n_micro_batches": 9},
            "a multiple of n_ranks; got 9 and 4; try 8 or 12",
            "n_micro_batches",
            (8, 12),
        ),
        (
            "pipedream_2bw",
            {"n_micro_batches": 3},
            "n_micro_batches of at least 4; got 3; try 4",
            "n_micro_batches",
            (4,),
        ),
        ("1f1b", {"n_micro_batches": 3, "dialect": "torch"}, "at least 4; got 3; try 4", "n_micro_batches", (4,)),
        ("1f1b", {"dialect": "jax"}, "the dialects megatron, torch, deepspeed; got 'jax'; try megatron", "dialect", ()),
        (
            "1f1b",
            {"warm_up": -1},
            r"a whole number of at least 0, or one a rank; got -1; try \[3, 2, 1, 0\]",
            "warm_up",
            (1,),
        ),
        ("1f1b", {"warm_up": [1, 2, 1, 0]}, "never larger on the rank behind", "warm_up", (1,)),
        ("1f1b", {"warm_up": [1, 0]}, "for each of 4 ranks; got", "warm_up", (1,)),
        ("eager_1f1b", {"warm_up": "two"}, "or one a rank; got 'two'", "warm_up", (1,)),
        ("interleaved_1f1b", {"group_size": 3}, "group_size of at least 4; got 3; try 4", "group_size", (4,)),
        ("interleaved_1f1b", {"group_size": 9}, "group_size of at most 8; got 9; try 8", "group_size", (8,)),
        ("interleaved_1f1b", {"group_size": 5}, "got 8 mod 5 = 3 and 4; try 9 or 5", "n_micro_batches", (9, 5)),
        ("interleaved_1f1b", {"n_ranks": 1}, "n_ranks of at least 2; got 1; try 2", "n_ranks", (2,)),
        (
            "interleaved_1f1b",
            {"n_micro_batches": 13, "dialect": "torch"},
            "multiple of the rounds, .*; got 13 and 3; try 12 or 15",
            "n_micro_batches",
            (12, 15),
        ),
        (
            "interleaved_1f1b",
            {"group_size": 8, "dialect": "torch"},
            "itself, 4 here; got 8; leave it out",
            "group_size",
            (4,),
        ),
        ("forward_only", {"dialect": "megatron"}, "the dialects stream, deepspeed; got 'megatron'", "dialect", ()),
        ("forward_only", {"dialect": "deepspeed", "n_chunks": 2}, "n_chunks is 1; got 2", "n_chunks", (1,)),
    ],
)
def test_refusals_name_the_nearest_that_would_do(
    name: str, numbers: dict[str, Any], message: str, argument: str, legal: tuple[int, ...]
) -> None:
    with pytest.raises(ScheduleError, match=message) as caught:
        ex.schedule(name, **{"n_ranks": 4, "n_micro_batches": 8, **numbers})
    assert caught.value.argument == argument
    assert caught.value.legal == legal


def test_the_list_says_what_ranks_keep() -> None:
    table = ex.schedules()
    assert table.weight_copies["1f1b"] == "1"
    assert table.weight_copies["chimera"] == "2"
    assert table.weight_copies["pipedream"] == "4, 3, 2, 1"
    assert table.holds["eager_1f1b"] == "2(P − 1 − r) + 1"
    assert table.options["interleaved_1f1b"] == "group_size, dialect"
