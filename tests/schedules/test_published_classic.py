"""Values that others published or that their programs give, for the schedules without a search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import explorer as ex
from explorer.schedules import REGISTRY
from explorer.schedules.deepspeed import buffers
from explorer.schedules.pipedream import admitted
from explorer.schedules.pipedream_2bw import version_used


def orders(program: ex.Program) -> list[str]:
    """One line a rank."""
    return [" ".join(map(str, program.order(rank))) for rank in range(program.n_ranks)]


def share(program: ex.Program, forward: float, backward: float, latency: float = 0.0) -> ex.Trace:
    """A rank's share of F and B, divided among its stages."""
    costs = ex.Costs.per_rank_share(forward=forward, backward=backward, latency=latency)
    return ex.simulate(program, costs.for_program(program))


def first_backwards(program: ex.Program) -> list[int]:
    """Forwards of each rank before its first backward: its warm-up and one more, unless that is all."""
    ranks = np.split(program.kind, program.rank_offsets[1:-1])
    return [int((of_rank != ex.Kind.F).argmax()) for of_rank in ranks]


# ── 1F1B and GPipe ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("p", "m", "f", "b", "makespan", "peaks"),
    [
        (4, 4, 1, 1, 14, [4, 3, 2, 1]),
        (3, 5, 2, 3, 35, [3, 2, 1]),
        (4, 1, 1, 2, 12, [1, 1, 1, 1]),
    ],
)
def test_1f1b_of_narayanan(p: int, m: int, f: float, b: float, makespan: float, peaks: list[int]) -> None:
    # arXiv:2104.04473, section 2.2.1
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=p, n_micro_batches=m), ex.Costs(forward=f, backward=b))
    assert trace.makespan == makespan
    assert trace.peak_in_flight.tolist() == peaks


@pytest.mark.parametrize(
    ("p", "m", "b", "makespan", "ratio"), [(4, 4, 1, 14, 6 / 14), (4, 1, 2, 12, 0.75), (4, 8, 2, 33, 9 / 33)]
)
def test_gpipe_of_huang(p: int, m: int, b: float, makespan: float, ratio: float) -> None:
    # arXiv:1811.06965, section 2.3
    trace = ex.simulate(ex.schedule("gpipe", n_ranks=p, n_micro_batches=m), ex.Costs(forward=1, backward=b))
    assert trace.makespan == makespan
    assert trace.bubble_ratio == pytest.approx(ratio)
    assert trace.peak_in_flight.tolist() == [m] * p


@pytest.mark.parametrize(
    ("p", "m", "c", "one", "gpipe"), [(4, 8, 1, 346, 336), (8, 24, 3, 1092, 972), (2, 3, 1, 124, 122)]
)
def test_messages_cost_1f1b_more_than_gpipe(p: int, m: int, c: float, one: float, gpipe: float) -> None:
    # dependencies of arXiv:2401.10241, appendix G, equations (4) and (5), F = 10, B = 20
    costs = ex.Costs(forward=10, backward=20, latency=c)
    for name, makespan in (("1f1b", one), ("gpipe", gpipe)):
        assert ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m), costs).makespan == makespan


@pytest.mark.parametrize(
    ("p", "m", "f", "b", "c", "rate"),
    [
        (8, 24, 18.522, 18.086 + 9.337, 0.601, 0.2431),
        (16, 64, 11.307, 11.254 + 8.101, 0.379, 0.2082),
        (32, 96, 10.419, 10.207 + 7.715, 0.408, 0.2646),
        (24, 72, 2 * 6.763, 2 * (6.969 + 5.251), 0.755, 0.2699),  # table 8 gives the two chunks of a stage
        (24, 192, 2 * 6.785, 2 * (6.990 + 5.260), 0.770, 0.1403),
        (32, 128, 2 * 9.469, 2 * (9.744 + 7.306), 0.892, 0.2204),
    ],
)
def test_1f1b_of_the_zero_bubble_paper(p: int, m: int, f: float, b: float, c: float, rate: float) -> None:
    # arXiv:2401.10241, tables 5 and 8: (cost − m(F+B+W)) / cost, where cost is the longest span of a rank
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=p, n_micro_batches=m), ex.Costs(forward=f, backward=b, latency=c))
    cost = trace.span_per_rank.max()
    assert (cost - m * (f + b)) / cost == pytest.approx(rate, abs=5.1e-5)


def test_a_deeper_warm_up_hides_messages_and_holds_more() -> None:
    # awesome-papers issue 87: P = 4, M = 8, F = 1, B = 2, a hop of 0.25, warm-ups p−1−r and 2(p−1−r)
    costs = ex.Costs(forward=1, backward=2, latency=0.25)
    numbers = {"n_ranks": 4, "n_micro_batches": 8}
    plain, eager = (ex.simulate(ex.schedule("1f1b", **numbers, warm_up=k), costs) for k in (1, 2))
    assert (plain.makespan, eager.makespan) == (37, 34.5)
    assert plain.peak_in_flight.tolist() == [4, 3, 2, 1]
    assert eager.peak_in_flight.tolist() == [7, 5, 3, 1]
    assert orders(ex.schedule("eager_1f1b", **numbers)) == orders(eager.program)


def test_both_ratios_of_the_bubble_are_there() -> None:
    # ai-engineering-from-scratch issue 66
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=8, n_micro_batches=32))
    assert trace.bubble_ratio == pytest.approx(0.1794871794871795)
    assert trace.bubble_overhead == pytest.approx(0.21875)


# ── interleaved, breadth-first ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("p", "m", "group", "makespan", "overhead", "warm_up", "peaks"),
    [
        (4, 8, 4, 57, 0.1875, [10, 8, 6, 4], [11, 9, 7, 5]),
        (3, 6, 3, 42, 1 / 6, [7, 5, 3], [8, 6, 4]),
        (4, 12, 6, 81, 0.125, [12, 10, 8, 6], [13, 11, 9, 7]),
        (4, 10, 5, 69, 0.15, [11, 9, 7, 5], [12, 10, 8, 6]),
    ],
)
def test_interleaved_with_group_sizes(
    p: int, m: int, group: int, makespan: float, overhead: float, warm_up: list[int], peaks: list[int]
) -> None:
    # arXiv:2104.04473, section 2.2.2, and Llama 3, arXiv:2407.21783, section 3.3.2; two chunks, F = 2, B = 4 a rank
    program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=2, group_size=group)
    trace = share(program, 2, 4)
    assert trace.makespan == makespan
    assert trace.bubble_overhead == pytest.approx(overhead)
    assert first_backwards(program) == [forwards + 1 for forwards in warm_up]
    assert trace.peak_in_flight.tolist() == peaks


@pytest.mark.parametrize(
    ("p", "m", "v", "overhead"),
    [(8, 32, 2, 0.109375), (8, 32, 4, 0.0546875), (16, 16, 2, 0.46875), (16, 32, 4, 0.1171875), (16, 16, 8, 0.1171875)],
)
def test_interleaving_leaves_the_published_share_of_useful_time(p: int, m: int, v: int, overhead: float) -> None:
    # arXiv:2104.04473, section 2.2.2; Llama 3, arXiv:2407.21783, section 3.3.2: (PP − 1)/(V·M)
    trace = share(ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v), 1, 2)
    assert trace.bubble_overhead == pytest.approx(overhead)


@pytest.mark.parametrize(
    ("p", "m", "v", "group", "warm_up"),
    [
        (2, 8, 2, 2, [4, 2]),
        (2, 8, 4, 2, [8, 6]),
        (2, 8, 2, 3, [5, 3]),
        (2, 32, 4, 3, [11, 9]),
        (2, 8, 4, 4, [14, 12]),
        (4, 5, 2, 5, [10, 9, 7, 5]),
        (4, 5, 4, 5, [20, 19, 17, 15]),
        (8, 32, 4, 8, [38, 36, 34, 32, 30, 28, 26, 24]),
        (8, 32, 2, 11, [25, 23, 21, 19, 17, 15, 13, 11]),
        (8, 32, 4, 11, [47, 45, 43, 41, 39, 37, 35, 33]),
    ],
)
def test_interleaved_warms_up_as_megatron(p: int, m: int, v: int, group: int, warm_up: list[int]) -> None:
    # Megatron-LM d98e8a6, core/pipeline_parallel/schedules.py, get_pp_rank_microbatches, run on these numbers
    program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v, group_size=group)
    assert first_backwards(ex.check(program)) == [min(forwards + 1, m * v) for forwards in warm_up]


def test_interleaved_with_a_smaller_last_group_is_megatrons_order() -> None:
    # the same function on P = 2, v = 2, M = 8, N = 3, rank 1: +c a forward and −c a backward of chunk c
    program = ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=8, n_chunks=2, group_size=3)
    signed = [(1 if action.kind == ex.Kind.F else -1) * (action.stage // 2 + 1) for action in program.order(1)]  # type: ignore[union-attr]
    wanted = "1 1 1 2 -2 2 -2 2 -2 1 -1 1 -1 1 -1 2 -2 2 -2 2 -2 1 -1 1 -1 2 -1 2 -2 -2 -1 -1"
    assert signed == [int(word) for word in wanted.split()]


@pytest.mark.parametrize(
    ("p", "m", "v", "f", "b", "c", "published", "full"),
    [
        (8, 24, 3, 18.522, 18.086 + 9.337, 0.601, 0.1055, 0.1090),
        (8, 64, 4, 29.935, 29.621 + 19.388, 0.535, 0.0320, 0.0328),
        (16, 48, 3, 11.347, 11.248 + 8.132, 0.377, 0.1104, 0.1136),
        (32, 256, 2, 10.402, 10.248 + 7.698, 0.460, 0.0624, 0.0641),
    ],
)
def test_interleaved_pays_all_messages_where_the_zero_bubble_paper_does_not(
    p: int, m: int, v: int, f: float, b: float, c: float, published: float, full: float
) -> None:
    # arXiv:2401.10241, table 5, 1F1B-I: its rates are not asserted, since the script behind them lets only the first
    # micro-batch of each group wait for the message that goes round the loop, and so lacks p of them
    trace = share(ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v), f, b, latency=c)
    cost, work = trace.span_per_rank.max(), m * (f + b)
    assert (cost - work) / cost == pytest.approx(full, abs=5.1e-5)
    assert (cost - p * c - work) / (cost - p * c) == pytest.approx(published, abs=5.1e-5)


@pytest.mark.parametrize(
    ("p", "v", "m", "makespan"), [(4, 2, 8, 57.0), (2, 2, 4, 27.0), (4, 4, 8, 52.5), (3, 2, 6, 42.0), (4, 2, 10, 69.0)]
)
def test_breadth_first_holds_everything_and_takes_no_longer(p: int, v: int, m: int, makespan: float) -> None:
    # arXiv:2211.05953, by torch 2.13's ScheduleLoopedBFS; F = 2, B = 4 a rank
    trace = share(ex.schedule("looped_bfs", n_ranks=p, n_micro_batches=m, n_chunks=v), 2, 4)
    assert trace.makespan == makespan
    assert trace.peak_in_flight.tolist() == [v * m] * p


# ── DeepSpeed ───────────────────────────────────────────────────────────────────────────────────────────────────────

_TRAIN_M8_S4 = [
    "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
    "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
    "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
    "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7",
]
_TRAIN_M3_S4 = ["F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2", "F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"]


@pytest.mark.parametrize(("m", "wanted"), [(8, _TRAIN_M8_S4), (3, _TRAIN_M3_S4)])
def test_1f1b_is_deepspeeds_train_schedule(m: int, wanted: list[str]) -> None:
    # DeepSpeed edaa722, runtime/pipe/schedule.py, TrainSchedule, run on 4 stages
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=m, dialect="deepspeed")
    assert orders(program) == [" ".join(f"{rank}{word}" for word in line.split()) for rank, line in enumerate(wanted)]


@pytest.mark.parametrize(
    ("m", "s", "wanted"),
    [(2, 2, [2, 2]), (4, 2, [2, 2]), (8, 4, [4, 3, 2, 2]), (3, 4, [3, 3, 2, 2]), (1, 4, [2, 2, 2, 2])],
)
def test_deepspeed_keeps_at_least_two_buffers(m: int, s: int, wanted: list[int]) -> None:
    # the same, num_pipe_buffers; DeepSpeed issue 2800 counts 4 on the first of 4 stages, not 5
    assert buffers(n_ranks=s, n_micro_batches=m).tolist() == wanted
    assert buffers(n_ranks=s, n_micro_batches=m, trains=False).tolist() == [2] * s


@pytest.mark.parametrize("dialect", ["stream", "deepspeed"])
@pytest.mark.parametrize(("p", "m", "makespan", "used"), [(3, 3, 5, 0.6), (3, 10, 12, 10 / 12), (4, 1, 4, 0.25)])
def test_inference_takes_deepspeeds_steps(dialect: str, p: int, m: int, makespan: int, used: float) -> None:
    # the same, InferenceSchedule: micro_batches + stages − 1 steps
    trace = ex.simulate(ex.schedule("forward_only", n_ranks=p, n_micro_batches=m, dialect=dialect))
    assert trace.makespan == makespan
    assert 1 - trace.bubble_ratio == pytest.approx(used)


@pytest.mark.parametrize(
    ("stages", "items", "total"),
    [((30, 60), 1, 90), ((30, 60), 4, 270), ((30, 60), 10, 630), ((1, 1, 8, 1), 100, 803), ((7, 3), 2, 17)],
)
def test_assembly_lines_of_textbooks(stages: tuple[float, ...], items: int, total: float) -> None:
    # washer and dryer, MIT 6.004: Σt + (N − 1)·max t
    program = ex.schedule("forward_only", n_ranks=len(stages), n_micro_batches=items)
    assert ex.simulate(program, ex.Costs(forward=stages)).makespan == total


@pytest.mark.parametrize(
    ("n_stages", "slices", "total"),
    [(3, (5, 5, 5), 25), (8, (1, 2, 9, 2, 1), 78), (5, (3, 1, 4, 1, 5, 9, 2, 6), 67)],
)
def test_token_slices_of_terapipe(n_stages: int, slices: tuple[float, ...], total: float) -> None:
    # TeraPipe, arXiv:2102.07988, equation (5): Σt + (K − 1)·max t, with a time for each slice
    program = ex.schedule("forward_only", n_ranks=n_stages, n_micro_batches=len(slices))
    assert ex.simulate(program, ex.Costs(forward=np.tile(slices, (n_stages, 1)))).makespan == total


# ── Chimera, Hanayo ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("p", "replicas", "ratio", "fewest", "most"),
    [(8, 2, 6 / 22, 5, 8), (16, 2, 14 / 46, 9, 16), (8, 4, 0.111111, 7, 8), (16, 8, 0.058824, 15, 16)],
)
def test_chimera_has_its_papers_bubble_and_activations(
    p: int, replicas: int, ratio: float, fewest: int, most: int
) -> None:
    # arXiv:2107.06925, tables 2 and 3: (D−2f)/(2fN+D−2f), [(D − D/2f + 1)Ma, D·Ma], exact for F = B and N = D
    program = ex.schedule("chimera", n_ranks=p, n_micro_batches=p, n_replicas=replicas)
    trace = ex.simulate(program, ex.Costs(forward=1, backward=1))
    assert trace.bubble_ratio == pytest.approx(ratio, abs=1e-6)
    assert (trace.peak_in_flight.min(), trace.peak_in_flight.max()) == (fewest, most)
    assert set(program.placement.weight_copies.tolist()) == {replicas}


@pytest.mark.parametrize(("p", "published"), [(4, 0.2), (8, 0.272727), (16, 0.304348)])
def test_chimera_idles_longer_than_unit_slots_say_where_backward_is_longer(p: int, published: float) -> None:
    # the form of table 2 counts F and B alike; with B = 2F it does not hold, and 2(D−2)/(3N+2(D−2)) does
    program = ex.schedule("chimera", n_ranks=p, n_micro_batches=p)
    ratio = ex.simulate(program, ex.Costs(forward=1, backward=2)).bubble_ratio
    assert ratio == pytest.approx(2 * (p - 2) / (3 * p + 2 * (p - 2)))
    assert ratio > published


@pytest.mark.parametrize(("p", "waves", "quoted"), [(4, 1, 0.4), (4, 2, 0.2222), (4, 4, 0.1176), (8, 1, 0.4516)])
def test_hanayo_idles_less_than_a_quoted_form_says(p: int, waves: int, quoted: float) -> None:
    # (2P−2)/(3PW+P−1) is quoted for T_B = 2T_F at second hand and unconfirmed, so it is not asserted; this order
    # gives (2P−2)/(3PW+2P−2), the same idle time over a whole that counts all of it
    program = ex.schedule("hanayo", n_ranks=p, n_micro_batches=p, n_chunks=2 * waves)
    ratio = ex.simulate(program, ex.Costs(forward=1, backward=2)).bubble_ratio
    assert ratio == pytest.approx((2 * p - 2) / (3 * p * waves + 2 * p - 2))
    assert ratio < quoted


# ── PipeDream ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pipedream_keeps_a_version_for_each_minibatch_in_flight() -> None:
    # PipeDream, arXiv:1806.03377, section 3.3; PipeDream-2BW, arXiv:2006.09503, section 3.1: 8 and 2 on 8 ranks
    versions = REGISTRY["pipedream"].copies_per_rank(8)
    assert versions.tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert ex.simulate(ex.schedule("pipedream", n_ranks=8, n_micro_batches=32)).peak_in_flight.tolist() == [*versions]
    assert REGISTRY["pipedream_2bw"].copies_per_rank(8).tolist() == [2] * 8


@pytest.mark.parametrize(
    ("name", "versions"), [("pipedream", [4, 3, 2, 1]), ("pipedream_2bw", [2] * 4), ("1f1b", [1] * 4)]
)
def test_memory_counts_every_version_of_the_weights(name: str, versions: list[int]) -> None:
    # the same; a gradient is held once
    trace = ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=8), ex.Costs(parameter_bytes=100))
    memory = trace.memory
    for category, counts in ((ex.Category.PARAMETERS, versions), (ex.Category.GRADIENTS, [1] * 4)):
        rows = memory.category == category
        assert memory.delta[rows][np.argsort(memory.rank[rows])].tolist() == [100 * count for count in counts]


def test_2bw_goes_on_the_version_before_the_newest() -> None:
    # arXiv:2006.09503, section 3.1: micro-batch 12 of batches of 4 uses version 1
    assert version_used(12, n_micro_batches=4) == 1
    assert [version_used(k, n_micro_batches=4) for k in (1, 4, 5, 8, 9, 13)] == [0, 0, 0, 0, 1, 2]


def test_pipedream_admits_enough_for_its_replicas() -> None:
    # arXiv:1806.03377, section 3.2, NOAM = ceil(machines / machines in the input stage); table 1's configurations
    assert [admitted(stages) for stages in ((9, 5, 1, 1), (2, 1, 1), (7, 1), (1, 1, 1, 1))] == [2, 2, 2, 4]


# ── Seq1F1B, GIS ────────────────────────────────────────────────────────────────────────────────────────────────────


def segments_held(program: ex.Program) -> list[int]:
    """The most segments each rank holds."""
    change: npt.NDArray[np.int64] = np.where(program.kind == ex.Kind.F, 1, -1)
    return [int(np.cumsum(part).max()) for part in np.split(change, program.rank_offsets[1:-1])]


@pytest.mark.parametrize(
    ("m", "k", "makespan", "held"),
    [(4, 2, 33, [5, 4, 3, 2]), (8, 2, 57, [5, 4, 3, 2]), (4, 4, 57, [7, 6, 5, 4])],
)
def test_seq1f1b_idles_a_segments_time(m: int, k: int, makespan: float, held: list[int]) -> None:
    # arXiv:2406.03488, equations (3) to (5); sail-sg's scheduler/seq1f1b.py on 4 ranks, F = 1 and B = 2 a segment
    program = ex.schedule("seq1f1b", n_ranks=4, n_micro_batches=m, n_segments=k)
    trace = ex.simulate(program, ex.Costs(forward=1, backward=2))
    assert trace.makespan == makespan
    assert trace.idle_per_rank.tolist() == [9] * 4
    assert segments_held(program) == held


def test_seq1f1b_is_its_authors_order() -> None:
    # sail-sg/zero-bubble-pipeline-parallelism 39f2c18, scheduler/seq1f1b.py, P = 4, M = 4, k = 2
    program = ex.schedule("seq1f1b", n_ranks=4, n_micro_batches=4, n_segments=2)
    assert orders(program)[0] == "0F0 0F0.1 0F1 0F1.1 0F2 0B0.1 0F2.1 0B0 0F3 0B1.1 0F3.1 0B1 0B2.1 0B2 0B3.1 0B3"
    assert orders(program)[2] == "2F0 2F0.1 2F1 2B0.1 2F1.1 2B0 2F2 2B1.1 2F2.1 2B1 2F3 2B2.1 2F3.1 2B2 2B3.1 2B3"


@pytest.mark.parametrize(
    ("p", "m", "v", "g", "held", "bubble"),
    [
        (4, 8, 2, 4, 8, 6),
        (4, 8, 2, 2, 6, 8),
        (4, 8, 2, 3, 7, 7),
        (8, 16, 2, 8, 16, 14),
        (8, 16, 2, 4, 12, 18),
        (4, 12, 3, 2, 8, 10),
        (8, 24, 3, 8, 24, 14),
        (8, 16, 2, 6, 14, 16),
    ],
)
def test_gis_trades_memory_for_bubble(p: int, m: int, v: int, g: int, held: int, bubble: float) -> None:
    # PipeOffload, arXiv:2503.01328: peak g(v−1)+d chunks, bubble (d−1)(F+I) + (d−g)(v−1) for F = I = W = 1
    program = ex.schedule("gis", n_ranks=p, n_micro_batches=m, n_chunks=v, group_size=g)
    trace = ex.simulate(program, ex.Costs(forward=1, backward_input=1, backward_weight=1))
    assert trace.idle_per_rank.tolist() == [bubble] * p
    assert trace.peak_in_flight.tolist() == [held - rank for rank in range(p)]


def test_gis_is_its_authors_order() -> None:
    # sail-sg/zero-bubble-pipeline-parallelism 39f2c18, group_interleaved_1f1b.py: P = 4, M = 8, v = 2, g = 3, rank 0,
    # whose last group lacks a micro-batch
    program = ex.schedule("gis", n_ranks=4, n_micro_batches=8, n_chunks=2, group_size=3)
    assert orders(program)[0] == (
        "0F0 0F1 0F2 4F0 4F1 4F2 0F3 4I0 4W0 0F4 4I1 4W1 0F5 4I2 4W2 4F3 0I0 0W0 4F4 0I1 0W1 4F5 0I2 0W2 0F6 4I3 4W3 "
        "0F7 4I4 4W4 4I5 4W5 4F6 0I3 0W3 4F7 0I4 0W4 0I5 0W5 4I6 4W6 4I7 4W7 0I6 0W6 0I7 0W7"
    )


def test_seq1f1b_holds_as_many_segments_as_its_authors_say():
    # golden orders of the Seq1F1B and GIS authors: P = 4, M = 4, k = 2 and 4
    for n_segments, expected in ((2, [5, 4, 3, 2]), (4, [7, 6, 5, 4])):
        program = ex.schedule("seq1f1b", n_ranks=4, n_micro_batches=4, n_segments=n_segments)
        assert ex.simulate(program).peak_segments.tolist() == expected
