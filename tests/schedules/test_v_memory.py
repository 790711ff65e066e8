"""V-Half, V-Min and 1F1B-V, schedules with controllable memory: authors' orders, published peaks and bubbles."""

from __future__ import annotations

import pytest

import explorer as ex

# ranks, micro-batches (4P), bubble of the longest span in chunk times of V-Min and V-Half; peaks in micro-batches
AUTHORS = [
    (2, 8, 3, 1, 2, 2),
    (3, 12, 5, 5, 2, 2),
    (5, 20, 15, 11, 3, 3),
    (6, 24, 17, 11, 3, 4),
    (8, 32, 27, 17, 4, 5),
    (12, 48, 41, 29, 5, 7),
]


@pytest.mark.parametrize(("p", "m", "min_bubble", "half_bubble", "min_peak", "half_peak"), AUTHORS)
def test_peaks_and_bubbles_are_the_authors(
    p: int, m: int, min_bubble: int, half_bubble: int, min_peak: int, half_peak: int
) -> None:
    # README of sail-sg/zero-bubble-pipeline-parallelism: V-Min (P+4)//3, V-Half (P+2)//2 micro-batches of two chunks;
    # bubbles from running its scheduler/zbv_greedy.py with F = I = W = 1
    assert (min_peak, half_peak) == ((p + 4) // 3, (p + 2) // 2)
    for name, bubble, peak in (("v_min", min_bubble, min_peak), ("v_half", half_bubble, half_peak)):
        trace = ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m))
        assert trace.span_per_rank.max() - 6 * m == bubble
        assert trace.peak_in_flight.max() in (2 * peak - 1, 2 * peak)


@pytest.mark.parametrize("p", [2, 3, 4, 6, 8])
def test_less_memory_costs_more_time(p: int) -> None:
    names = ("zb_v", "v_half", "v_min")
    traces = [ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=4 * p)) for name in names]
    spans = [trace.span_per_rank.max() for trace in traces]
    peaks = [trace.peak_in_flight.max() for trace in traces]
    assert spans == sorted(spans)
    assert peaks == sorted(peaks, reverse=True)


def test_v_half_is_the_authors_order() -> None:
    # sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py, run for 4 ranks and 8 micro-batches
    program = ex.schedule("v_half", n_ranks=4, n_micro_batches=8)
    trace = ex.simulate(program)
    assert (trace.makespan, trace.span_per_rank.max()) == (53, 53)
    assert trace.peak_in_flight.tolist() == [6, 6, 6, 6]
    assert str(program).split("\n")[0] == (
        "rank 0: 0F0 0F1 0F2 0F3 0F4 7F0 7I0 7W0 7F1 7I1 7W1 7F2 0I0 7I2 7W2 7F3 0W0 0F5 0I1 7I3 7W3 7F4 0W1 0F6 0I2 "
        "7I4 7W4 7F5 0W2 0F7 0I3 7I5 7W5 7F6 7I6 7W6 0I4 0W3 0W4 7F7 7I7 0I5 7W7 0I6 0W5 0W6 0I7 0W7"
    )
    assert str(program).split("\n")[3] == (
        "rank 3: 3F0 4F0 3F1 4F1 3F2 4F2 4I0 4W0 3I0 3W0 3F3 4F3 4I1 4W1 3I1 3W1 3F4 4F4 4I2 4W2 3I2 3W2 3F5 4F5 4I3 "
        "4W3 3I3 3F6 3W3 4F6 4I4 3I4 4W4 3F7 3W4 4F7 4I5 3I5 4I6 3I6 4W5 4W6 4I7 3I7 4W7 3W5 3W6 3W7"
    )
    assert ex.simulate(ex.schedule("v_half", n_ranks=8, n_micro_batches=16)).idle_per_rank.tolist() == [17] * 8


@pytest.mark.parametrize("name", ["v_half", "v_min"])
def test_few_micro_batches_and_one_rank_work_too(name: str) -> None:
    for p, m in ((1, 1), (1, 5), (4, 1), (5, 3), (7, 2)):
        trace = ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m))
        assert trace.span_per_rank.max() >= 6 * m


@pytest.mark.parametrize(
    ("p", "m", "bubble", "peak"),
    [(2, 8, 4, 2), (3, 12, 8, 3), (5, 20, 18, 4), (6, 24, 22, 5), (8, 32, 33, 6), (12, 48, 52, 9)],
)
def test_1f1b_v_is_as_good_as_the_authors(p: int, m: int, bubble: int, peak: int) -> None:
    # from running scheduler/v1f1b.py of sail-sg/zero-bubble-pipeline-parallelism with F = 1, B = 2, in chunk times
    trace = ex.simulate(ex.schedule("v_1f1b", n_ranks=p, n_micro_batches=m))
    assert trace.span_per_rank.max() - 6 * m == bubble
    assert trace.peak_in_flight.max() == 2 * peak


def test_1f1b_v_is_the_authors_order() -> None:
    # sail-sg/zero-bubble-pipeline-parallelism, scheduler/v1f1b.py, run for 3 ranks and 6 micro-batches
    program = ex.schedule("v_1f1b", n_ranks=3, n_micro_batches=6)
    assert str(program).split("\n") == [
        "rank 0: 0F0 0F1 0F2 0F3 0F4 5F0 5B0 5F1 5B1 5F2 5B2 5F3 0B0 5B3 0F5 5F4 0B1 5B4 5F5 0B2 5B5 0B3 0B4 0B5",
        "rank 1: 1F0 1F1 1F2 4F0 1F3 4F1 4B0 4F2 4B1 1F4 1B0 4F3 4B2 1B1 4F4 4B3 1F5 1B2 4F5 4B4 1B3 4B5 1B4 1B5",
        "rank 2: 2F0 3F0 2F1 3F1 2F2 3F2 3B0 2B0 2F3 3F3 3B1 2B1 2F4 3F4 3B2 2B2 2F5 3F5 3B3 2B3 3B4 2B4 3B5 2B5",
    ]
    trace = ex.simulate(program)
    assert (trace.makespan, trace.idle_per_rank.tolist(), trace.peak_in_flight.tolist()) == (44, [8] * 3, [6] * 3)
