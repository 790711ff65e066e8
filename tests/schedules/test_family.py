"""What every schedule in the registry must do, and closed forms with their source."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

import explorer as ex
from explorer.errors import InputError, ScheduleError
from explorer.schedules import REGISTRY

NAMES = sorted(REGISTRY)
TRAINING = [name for name in NAMES if REGISTRY[name].trains]


def legal(name: str, n_ranks: int, n_micro_batches: int, n_chunks: int) -> ex.Program:
    """The program for these numbers, or for the nearest legal ones the schedule names itself."""
    numbers = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches, "n_chunks": n_chunks}
    for _ in range(len(numbers) + 1):
        try:
            return ex.schedule(name, **numbers)
        except InputError as error:
            numbers[error.argument] = error.legal[0]  # every refusal names what would do
    raise AssertionError(f"following its advice leads nowhere: {name} {numbers}")


@given(st.sampled_from(NAMES), st.integers(1, 9), st.integers(1, 20), st.integers(1, 4))
def test_every_schedule_is_complete_and_can_finish(name: str, n_ranks: int, n_micro_batches: int, v: int) -> None:
    program = legal(name, n_ranks, n_micro_batches, v)
    assert ex.check(program) is program
    assert program.has_backward == REGISTRY[name].trains
    pairs = program.n_stages * program.n_micro_batches * program.n_segments
    assert (program.kind == ex.Kind.F).sum() == pairs
    assert np.isin(program.kind, (ex.Kind.B, ex.Kind.W)).sum() == (pairs if REGISTRY[name].trains else 0)


@given(st.sampled_from(NAMES), st.integers(2, 6), st.integers(1, 12), st.integers(1, 3))
def test_equal_shares_give_equal_work_in_every_schedule(name: str, n_ranks: int, m: int, v: int) -> None:
    program = legal(name, n_ranks, m, v)
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0, parameter_bytes=120.0, activation_bytes=60.0)
    costs = share.for_program(program)
    work = costs.slot_seconds(program).sum()
    per_micro_batch = 3.0 if REGISTRY[name].trains else 1.0
    assert work == pytest.approx(per_micro_batch * program.n_ranks * program.n_micro_batches)
    assert costs.bytes_of_stage("parameter_bytes", program)[:, 0, 0].sum() == pytest.approx(120.0 * program.n_ranks)


@pytest.mark.parametrize("p", range(1, 17))
@pytest.mark.parametrize("m", [1, 2, 3, 7, 16, 33, 64])
def test_gpipe_and_1f1b_take_what_the_formula_says(p: int, m: int) -> None:
    # GPipe, arXiv:1811.06965, section 2.3; arXiv:2104.04473, section 2.2.1
    for name in ("gpipe", "1f1b"):
        trace = ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m), ex.Costs(forward=2.0, backward=3.0))
        assert trace.makespan == pytest.approx((m + p - 1) * 5.0)
        assert trace.bubble_ratio == pytest.approx((p - 1) / (m + p - 1))
        assert trace.bubble_overhead == pytest.approx((p - 1) / m)


@pytest.mark.parametrize(("p", "groups", "v"), list(itertools.product(range(2, 9), (1, 2, 5), (2, 3, 4))))
def test_interleaving_divides_the_bubble_by_the_chunks(p: int, groups: int, v: int) -> None:
    # arXiv:2104.04473, section 2.2.2: bubble (P−1)(F+B)/v for a rank's share F, B and M a multiple of P
    program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=groups * p, n_chunks=v)
    trace = ex.simulate(program, ex.Costs.per_rank_share(forward=1.0, backward=2.0).for_program(program))
    np.testing.assert_allclose(trace.idle_per_rank, (p - 1) * 3.0 / v)


@pytest.mark.parametrize("p", [2, 3, 4, 8])
@pytest.mark.parametrize("m", [1, 4, 8, 31])
def test_latency_costs_what_the_formula_says(p: int, m: int) -> None:
    # GPipe (M+P−1)(F+B) + 2(P−1)c; 1F1B pays besides 2c·floor((M−1)(P−1)/P): each steady round trip waits for a message
    c = 0.25
    costs = ex.Costs(forward=1.0, backward=2.0, latency=c)
    base = (m + p - 1) * 3.0 + 2 * (p - 1) * c
    gpipe, one = (ex.simulate(ex.schedule(n, n_ranks=p, n_micro_batches=m), costs) for n in ("gpipe", "1f1b"))
    assert gpipe.makespan == pytest.approx(base)
    assert one.makespan == pytest.approx(base + 2 * c * ((m - 1) * (p - 1) // p))


@given(st.integers(1, 8), st.integers(1, 24))
def test_naive_keeps_one_rank_busy_at_a_time(p: int, m: int) -> None:
    trace = ex.simulate(ex.schedule("naive", n_ranks=p, n_micro_batches=m))
    assert trace.makespan == pytest.approx(3.0 * p * m)
    assert trace.bubble_ratio == pytest.approx((p - 1) / p)
    assert trace.peak_in_flight.tolist() == [1] * p


@given(st.lists(st.floats(0.1, 5), min_size=1, max_size=8), st.integers(1, 20))
def test_forward_only_is_the_assembly_line(stages: list[float], m: int) -> None:
    # flow shop with one item size: Σt + (M−1)·max t
    program = ex.schedule("forward_only", n_ranks=len(stages), n_micro_batches=m)
    trace = ex.simulate(program, ex.Costs(forward=stages))
    assert trace.makespan == pytest.approx(sum(stages) + (m - 1) * max(stages))


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)), min_size=1, max_size=6), st.integers(1, 16))
def test_unequal_stages_follow_their_closed_forms(stages: list[tuple[float, float]], m: int) -> None:
    # GPipe exactly Σ(F+B) + (M−1)(max F + max B)
    forward, backward = zip(*stages, strict=True)
    costs = ex.Costs(forward=forward, backward=backward)
    gpipe = ex.simulate(ex.schedule("gpipe", n_ranks=len(stages), n_micro_batches=m), costs)
    total = sum(forward) + sum(backward)
    assert gpipe.makespan == pytest.approx(total + (m - 1) * (max(forward) + max(backward)))


@given(st.lists(st.floats(0.1, 5), min_size=1, max_size=6), st.integers(1, 16), st.floats(0.5, 3))
def test_1f1b_is_bounded_by_its_slowest_stage(forward: list[float], m: int, ratio: float) -> None:
    # at most Σ(F+B) + (M−1)·max(F+B) where B/F is the same on all stages; F, B = (1, 3), (4, 0.5), (1, 1) with two
    # micro-batches takes 15.5, above the 15 it would give: the longest F and B then lie on different stages
    costs = ex.Costs(forward=forward, backward=np.array(forward) * ratio)
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=len(forward), n_micro_batches=m), costs)
    bound = (1 + ratio) * (sum(forward) + (m - 1) * max(forward))
    assert trace.makespan <= bound * (1 + 1e-12)


def test_1f1b_holds_p_minus_r_micro_batches_and_gpipe_all() -> None:
    # arXiv:2104.04473, section 2.2.1: at most P in flight
    peaks = {n: ex.simulate(ex.schedule(n, n_ranks=8, n_micro_batches=32)).peak_in_flight for n in ("1f1b", "gpipe")}
    assert peaks["1f1b"].tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert peaks["gpipe"].tolist() == [32] * 8


def test_interleaved_1f1b_warms_up_and_holds_as_megatron_does() -> None:
    # Megatron-LM core/pipeline_parallel/schedules.py: warm-up 2(P−r−1) + (v−1)P; Megatron-LM issue 169: span 26.25
    program = ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=8, n_chunks=4)
    trace = ex.simulate(program, ex.Costs.per_rank_share(forward=1.0, backward=2.0).for_program(program))
    assert trace.makespan == 26.25
    assert trace.peak_in_flight.tolist() == [19, 17, 15, 13]
    kinds = [program.kind[a:b].tolist() for a, b in itertools.pairwise(program.rank_offsets)]
    assert [of_rank.index(ex.Kind.B) for of_rank in kinds] == [19, 17, 15, 13]  # warm-up and one steady forward


@pytest.mark.parametrize(
    ("name", "numbers", "makespan"),
    [
        ("1f1b", {"n_ranks": 8, "n_micro_batches": 64}, 213.0),
        ("interleaved_1f1b", {"n_ranks": 8, "n_micro_batches": 64, "n_chunks": 2}, 405.0),
        ("gpipe", {"n_ranks": 4, "n_micro_batches": 2}, 15.0),  # fewer micro-batches than ranks: pytorch issue 171462
        ("1f1b", {"n_ranks": 8, "n_micro_batches": 1}, 24.0),
        ("forward_only", {"n_ranks": 4, "n_micro_batches": 8}, 11.0),
    ],
)
def test_makespans_agree_with_other_tools(name: str, numbers: dict[str, int], makespan: float) -> None:
    assert ex.simulate(ex.schedule(name, **numbers)).makespan == makespan


# F, B of each stage in µs and the iteration in ms, recorded on 8 GPUs, 128 micro-batches, 1F1B; Yeung et al. 2024,
# Balancing Pipeline Parallelism with Vocabulary Parallelism, arXiv:2411.05288
RECORDED = [
    (
        (10572, 10591, 10475, 10725, 10360, 10444, 10381, 36818),
        (25185, 21108, 20737, 21143, 20805, 21030, 20827, 52363),
        11722.2,
    ),
    (
        (10881, 10880, 10913, 10679, 10641, 10789, 13773, 14876),
        (22845, 21465, 21517, 21361, 21373, 21717, 27570, 24031),
        5595.5,
    ),
    (
        (24391, 23909, 23369, 30201, 29923, 30086, 30028, 52733),
        (50764, 46045, 45464, 58007, 57927, 58110, 58271, 58574),
        14900.5,
    ),
]


@pytest.mark.parametrize(("forward", "backward", "iteration"), RECORDED)
def test_recorded_iterations_are_predicted_within_two_percent(
    forward: tuple[int, ...], backward: tuple[int, ...], iteration: float
) -> None:
    program = ex.schedule("1f1b", n_ranks=8, n_micro_batches=128)
    trace = ex.simulate(program, ex.Costs(forward=np.array(forward) / 1e6, backward=np.array(backward) / 1e6))
    assert trace.makespan * 1e3 == pytest.approx(iteration, rel=0.02)


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "3", None])
@pytest.mark.parametrize("argument", ["n_ranks", "n_micro_batches"])
def test_counts_must_be_whole_and_at_least_one(argument: str, count: object) -> None:
    numbers = {"n_ranks": 4, "n_micro_batches": 8, argument: count}
    with pytest.raises(ScheduleError, match=f"{argument} is a whole number of at least 1; got .*; try 1") as caught:
        ex.schedule("1f1b", **numbers)  # type: ignore[arg-type]
    assert (caught.value.argument, caught.value.legal) == (argument, (1,))


def test_interleaved_1f1b_names_the_nearest_multiples() -> None:
    message = "n_micro_batches to be a multiple of n_ranks; got 10 and 4; try 8 or 12"
    with pytest.raises(ScheduleError, match=message) as caught:
        ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=10)
    assert caught.value.legal == (8, 12)
    with pytest.raises(ScheduleError, match="got 3 and 4; try 4"):
        ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=3)
    with pytest.raises(ScheduleError, match="n_chunks of at least 2; got 1; try 2, or 1f1b"):
        ex.schedule("interleaved_1f1b", n_ranks=4, n_micro_batches=8, n_chunks=1)


@pytest.mark.parametrize("name", ["naive", "gpipe", "1f1b"])
def test_one_stage_schedules_refuse_chunks(name: str) -> None:
    with pytest.raises(ScheduleError, match=f"{name} runs one stage a rank, so n_chunks is 1; got 2; try 1"):
        ex.schedule(name, n_ranks=4, n_micro_batches=8, n_chunks=2)


def test_unknown_names_and_options_get_a_hint() -> None:
    with pytest.raises(ScheduleError, match="got 'gpip'; did you mean gpipe"):
        ex.schedule("gpip", n_ranks=2, n_micro_batches=2)
    with pytest.raises(ScheduleError, match=r"a schedule is one of .*1f1b"):
        ex.schedule(None, n_ranks=2, n_micro_batches=2)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=r"1f1b takes n_ranks, .*; got colour; leave it out"):
        ex.schedule("1f1b", n_ranks=2, n_micro_batches=2, colour=1)


def test_schedules_lists_each_with_what_it_needs() -> None:
    table = ex.schedules()
    assert sorted(table.index) == NAMES
    assert table.summary.str.len().min() > 20
    assert "multiple of n_ranks" in table.needs["interleaved_1f1b"]


def test_programs_that_no_memory_holds_are_refused_at_once() -> None:
    with pytest.raises(ScheduleError, match=r"at most 4,000,000 pairs of stage and micro-batch; .* try fewer ranks"):
        ex.schedule("1f1b", n_ranks=2**40, n_micro_batches=8)
    with pytest.raises(ScheduleError, match="try 1000000 micro-batches") as caught:
        ex.schedule("gpipe", n_ranks=4, n_micro_batches=2**40)
    assert caught.value.legal == (1_000_000,)


def test_numpys_small_integers_count_like_any_other() -> None:
    small = ex.schedule("interleaved_1f1b", n_ranks=np.int8(100), n_micro_batches=np.int8(100))  # type: ignore[arg-type]
    assert small.n_actions == 2 * 200 * 100


def test_what_is_no_program_or_no_costs_is_refused() -> None:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    for simulate in (ex.simulate, ex.simulate_events):
        with pytest.raises(InputError, match="this needs a Program; got str"):
            simulate("1f1b")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"takes Costs; got RankShare; divide it with .for_program"):
            simulate(program, ex.Costs.per_rank_share(forward=1))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"takes Costs; got float; try Costs"):
            simulate(program, 1.0)  # type: ignore[arg-type]


@given(st.sampled_from(sorted(REGISTRY)), st.integers(-1, 9), st.integers(-1, 20), st.integers(-1, 4))
def test_what_a_refusal_names_as_legal_is_legal(name: str, n_ranks: int, n_micro_batches: int, n_chunks: int) -> None:
    counts = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches, "n_chunks": n_chunks}
    try:
        ex.schedule(name, **counts)
    except ScheduleError as error:
        for value in error.legal:
            try:
                ex.schedule(name, **{**counts, error.argument: value})
            except ScheduleError as other:  # of another count that is wrong too
                assert other.argument != error.argument, (value, str(error), str(other))  # noqa: PT017
