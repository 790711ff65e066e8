"""What others measured, printed or asked, held against the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError, ScheduleError

# Recorded runs of 1F1B on 8 GPUs with 128 micro-batches: microseconds of F and B of each stage, the measured iteration
# in milliseconds, and 1 − mean busy time / iteration. The last stage carries the vocabulary.
# Source: sail-sg/VocabularyParallelism at 6191c3b, artifact/exp_one_host.csv.
RECORDED = [
    (
        "base_v256k_s2k",
        [10572, 10591, 10475, 10725, 10360, 10444, 10381, 36818],
        [25185, 21108, 20737, 21143, 20805, 21030, 20827, 52363],
        11722.2,
        0.572,
    ),
    (
        "base_v128k_s2k",
        [10599, 10616, 10637, 10612, 10352, 10540, 10470, 24152],
        [23338, 20978, 20968, 21162, 20785, 21242, 21067, 37615],
        8202.6,
        0.4438,
    ),
    (
        "redis_v128k_s2k",
        [10696, 10629, 10572, 10612, 10444, 13674, 13660, 18708],
        [23417, 21081, 20955, 21362, 20975, 27415, 27328, 26685],
        6140.6,
        0.249,
    ),
    (
        "redis_v64k_s2k",
        [10881, 10880, 10913, 10679, 10641, 10789, 13773, 14876],
        [22845, 21465, 21517, 21361, 21373, 21717, 27570, 24031],
        5595.5,
        0.2128,
    ),
    (
        "base_v32k_s2k",
        [10761, 10887, 10681, 10573, 10554, 10674, 10612, 14603],
        [21993, 21497, 21130, 21279, 21267, 21412, 21364, 25997],
        5489.9,
        0.2268,
    ),
    (
        "redis_v32k_s2k",
        [10733, 10881, 10701, 10581, 10586, 10688, 10612, 14668],
        [22002, 21472, 21194, 21311, 21249, 21508, 21289, 26045],
        5508.7,
        0.2288,
    ),
    (
        "base_v256k_s4k",
        [24223, 23749, 23346, 23621, 23470, 23433, 23650, 76548],
        [50416, 45615, 45146, 45292, 45518, 45198, 45715, 106804],
        23959.4,
        0.5514,
    ),
    (
        "redis_v256k_s4k",
        [24391, 23909, 23369, 30201, 29923, 30086, 30028, 52733],
        [50764, 46045, 45464, 58007, 57927, 58110, 58271, 58574],
        14900.5,
        0.2722,
    ),
]


@pytest.mark.parametrize(("name", "forward", "backward", "iteration", "bubble"), RECORDED)
def test_recorded_runs_are_predicted_within_two_percent(name, forward, backward, iteration, bubble):
    program = ex.schedule("1f1b", n_ranks=8, n_micro_batches=128)
    costs = ex.Costs(forward=np.array(forward) * 1e-6, backward=np.array(backward) * 1e-6)
    trace = ex.simulate(program, costs)
    assert trace.makespan * 1e3 == pytest.approx(iteration, rel=0.02)
    assert trace.makespan * 1e3 <= iteration  # optimizer and messages are not among F and B
    busy = 128 * (np.array(forward) + np.array(backward)).mean() * 1e-3
    assert 1 - busy / iteration == pytest.approx(bubble, abs=1e-4)


# Fill-drain inference: micro_batches + stages − 1 steps. Source: DeepSpeed at edaa722, runtime/pipe/schedule.py,
# InferenceSchedule; kakaobrain/torchgpipe#31 for 4 × 8.
@pytest.mark.parametrize(("p", "m", "makespan"), [(3, 3, 5), (3, 10, 12), (4, 1, 4), (4, 8, 11)])
@pytest.mark.parametrize("dialect", ["stream", "deepspeed"])
def test_inference_fills_and_drains(p, m, makespan, dialect):
    trace = ex.simulate(ex.schedule("forward_only", n_ranks=p, n_micro_batches=m, dialect=dialect))
    assert trace.makespan == makespan
    assert 1 - trace.bubble_ratio == pytest.approx(m / (m + p - 1))


# T = Σt + (K−1)·max t for slices t through K equal stages. Source: TeraPipe, arXiv:2102.07988, equation 5.
@pytest.mark.parametrize(
    ("n_stages", "slices", "makespan"),
    [(3, [5, 5, 5], 25), (8, [1, 2, 9, 2, 1], 78), (5, [3, 1, 4, 1, 5, 9, 2, 6], 67)],
)
def test_unequal_slices_follow_terapipe(n_stages, slices, makespan):
    program = ex.schedule("forward_only", n_ranks=n_stages, n_micro_batches=len(slices))
    costs = ex.Costs(forward=np.broadcast_to(np.array(slices, float), (n_stages, len(slices))))
    assert ex.simulate(program, costs).makespan == makespan


# A line takes Σt + (M−1)·max t, its first item Σt, and gives one item each max t. Source: MIT 6.004 notes (washer and
# dryer, 30 and 60 minutes: N loads take 30 + 60N); UW CSE 467 lecture (throughput 1/d, latency n·d).
@pytest.mark.parametrize(
    ("stages", "n_items", "total", "latency", "rate"),
    [
        ([30, 60], 1, 90, 90, None),
        ([30, 60], 2, 150, 90, 1 / 60),
        ([30, 60], 4, 270, 90, 1 / 60),
        ([30, 60], 10, 630, 90, 1 / 60),
        ([5, 5, 5, 5], 8, 55, 20, 0.2),
        ([1, 1, 8, 1], 100, 803, 11, 0.125),
        ([7, 3], 2, 17, 10, 1 / 7),
    ],
)
def test_a_line_gives_an_item_each_longest_stage(stages, n_items, total, latency, rate):
    program = ex.schedule("forward_only", n_ranks=len(stages), n_micro_batches=n_items)
    trace = ex.simulate(program, ex.Costs(forward=stages))
    assert trace.makespan == total
    assert ex.items(trace).latency[0] == latency
    assert np.isnan(ex.throughput(trace)) if rate is None else ex.throughput(trace) == pytest.approx(rate)


def test_without_room_behind_a_stage_the_line_still_keeps_pace_and_items_wait_outside():
    stages, n = [1.0, 1.0, 8.0, 1.0], 20
    roomy = ex.simulate(ex.schedule("forward_only", n_ranks=4, n_micro_batches=n), ex.Costs(forward=stages))
    tight = ex.simulate(ex.schedule("forward_only", n_ranks=4, n_micro_batches=n, buffers=0), ex.Costs(forward=stages))
    assert tight.makespan == roomy.makespan  # the longest stage is never without work
    # with room the last of 20 items goes in at 19 and waits inside; without it enters 2 places before the bottleneck
    assert ex.items(roomy).latency.max() == 163 - 19
    assert ex.items(tight).latency.max() <= 3 * 8 + 3


# Little's law: with L items inside and latency T the rate is L/T. Source: MIT 6.004 notes, as above.
def test_littles_law_holds_in_a_steady_line():
    trace = ex.simulate(ex.schedule("forward_only", n_ranks=4, n_micro_batches=50), ex.Costs(forward=5.0))
    assert ex.throughput(trace) * ex.items(trace).latency.median() == pytest.approx(4)  # one on each stage


# In-order CPU pipelines. Source: k + n − 1 cycles for n instructions in k stages (Patterson & Hennessy); 5 stages, 120
# instructions, 5 mispredicted branches of 3 cycles: 139 cycles; stages 60, 50, 90, 80 ns behind a 10 ns latch: 1,000
# tasks take 100,300 ns (Gate Vidyalay).
def test_a_cpu_pipeline_with_branches_takes_the_cycles_of_the_textbook():
    line = ex.schedule("forward_only", n_ranks=5, n_micro_batches=120)
    assert ex.simulate(line).makespan == 124
    # a branch is known once its third stage is over: 3 cycles are lost before the next instruction
    hazards = [(f"0F{branch}", f"0F{branch + 1}", 3.0) for branch in (10, 30, 50, 70, 90)]
    assert ex.simulate(line.with_waits(*hazards)).makespan == 139


@pytest.mark.parametrize(("k", "n", "cycles"), [(5, 1, 5), (4, 8, 11), (5, 3, 7)])
def test_n_instructions_take_k_plus_n_minus_one_cycles(k, n, cycles):
    assert ex.simulate(ex.schedule("forward_only", n_ranks=k, n_micro_batches=n)).makespan == cycles


def test_a_clocked_pipeline_is_as_fast_as_its_slowest_stage_and_latch():
    cycle = max(60, 50, 90, 80) + 10
    trace = ex.simulate(ex.schedule("forward_only", n_ranks=4, n_micro_batches=1000), ex.Costs(forward=float(cycle)))
    assert trace.makespan == 100_300


# User reports, each with the numbers they came to.
def test_bubbles_have_two_denominators():  # rohitg00/ai-engineering-from-scratch#66
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=8, n_micro_batches=32))
    assert trace.bubble_ratio == pytest.approx(0.1794871794871795)
    assert trace.bubble_overhead == pytest.approx(0.21875)


def test_rank_0_holds_as_many_as_there_are_ranks():  # DeepSpeed#4477, #2800: 4 buffers, not 5
    assert ex.simulate(ex.schedule("1f1b", n_ranks=8, n_micro_batches=32)).peak_in_flight.tolist() == [*range(8, 0, -1)]
    assert ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)).peak_in_flight[0] == 4


def test_fewer_micro_batches_than_ranks_are_slow_but_no_error():  # torchtitan#775, pytorch#171462
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=8, n_micro_batches=1))
    assert (trace.makespan, 1 - trace.bubble_ratio) == (24, pytest.approx(0.125))
    assert ex.simulate(ex.schedule("gpipe", n_ranks=4, n_micro_batches=2)).makespan == 15


def test_a_hiccup_without_slack_is_passed_on_whole():  # awesome-papers#154
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    assert ex.simulate(program, ex.Costs(delays={"1F4": 3.0})).makespan == 36


def test_recompute_costs_a_forward_and_spares_memory():  # torchgpipe#12: 8 layers a stage, bytes in units of s·b·h
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    kept = ex.simulate(program, ex.Costs(activation_bytes=8 * 34.0))
    rebuilt = ex.simulate(program, ex.Costs(recompute=1.0, activation_bytes=8 * 2.0, recompute_bytes=34.0))
    assert (kept.makespan, rebuilt.makespan) == (33, 44)
    assert kept.bubble_ratio == rebuilt.bubble_ratio == pytest.approx(0.2727272727272727)
    assert (ex.peak_bytes(kept)[0], ex.peak_bytes(rebuilt)[0]) == (1088, 98)


@pytest.mark.parametrize("buffers", [-1, 1.5, True])
def test_impossible_buffers_are_refused(buffers):
    with pytest.raises(ScheduleError, match="buffers is a whole number of at least 0"):
        ex.schedule("forward_only", n_ranks=2, n_micro_batches=2, buffers=buffers)


def test_a_wait_of_no_action_is_refused():
    with pytest.raises(ProgramError, match="has no 7F0"):
        ex.schedule("forward_only", n_ranks=2, n_micro_batches=2).with_waits(("7F0", "0F1", 0.0))
