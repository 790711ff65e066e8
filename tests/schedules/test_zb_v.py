"""ZB-V: the authors' orders and published bubble rates, closed form, limits, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ScheduleError


def test_zb_v_is_the_authors_order() -> None:
    # sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv.py, run for 3 ranks and 6 micro-batches
    assert str(ex.schedule("zb_v", n_ranks=3, n_micro_batches=6)) == (
        "rank 0: 0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 5I2 5W2 0F5 0I0 0W0 5F3 5I3 5W3 0I1 0W1 5F4 5I4 5W4 "
        "0I2 0W2 5F5 5I5 0I3 5W5 0I4 0W3 0I5 0W4 0W5\n"
        "rank 1: 1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 4I1 4W1 1F4 1I0 1W0 4F3 4I2 4W2 1F5 1I1 1W1 4F4 4I3 4W3 1I2 1W2 "
        "4F5 4I4 1I3 4I5 1I4 4W4 1I5 1W3 4W5 1W4 1W5\n"
        "rank 2: 2F0 3F0 2F1 3F1 2F2 3F2 3I0 3W0 2F3 2I0 2W0 3F3 3I1 3W1 2F4 2I1 2W1 3F4 3I2 3W2 2F5 2I2 2W2 3F5 3I3 "
        "2I3 3I4 2I4 3I5 2I5 3W3 2W3 3W4 2W4 3W5 2W5"
    )


@pytest.mark.parametrize("p", [*range(1, 9), 12, 16])
def test_no_rank_idles_between_its_first_and_last_action(p: int) -> None:
    # arXiv:2401.10241, section 6: F = I = W and M ≥ 2P, in chunk times; memory that of 1F1B
    for m in (2 * p, 2 * p + 3):
        trace = ex.simulate(ex.schedule("zb_v", n_ranks=p, n_micro_batches=m))
        assert trace.span_per_rank.max() == 6 * m
        assert trace.makespan == 6 * m + p - 1
        assert trace.idle_per_rank.tolist() == [p - 1] * p
        assert trace.peak_in_flight.tolist() == [2 * p] * p


# ranks, micro-batches, F, I, W of a chunk and the message in µs, bubble rate of the longest span
TABLE_8 = [
    (16, 48, 14407, 14380, 9676, 1610, 0.0697),
    (16, 128, 14316, 14306, 9639, 1619, 0.0274),
    (24, 72, 6763, 6969, 5251, 755, 0.0638),
    (24, 96, 6783, 6984, 5259, 758, 0.0483),
    (24, 192, 6785, 6990, 5260, 770, 0.0250),
    (32, 96, 9458, 9748, 7288, 879, 0.0593),
    (32, 128, 9469, 9744, 7306, 892, 0.0451),
    (32, 256, 9447, 9644, 7193, 887, 0.0236),
]


@pytest.mark.parametrize(("p", "m", "f", "i", "w", "c", "rate"), TABLE_8)
def test_bubble_rates_are_those_of_table_8(p: int, m: int, f: int, i: int, w: int, c: int, rate: float) -> None:
    # arXiv:2401.10241, table 8: (longest span − work) ÷ longest span
    costs = ex.Costs(forward=f, backward_input=i, backward_weight=w, latency=c)
    trace = ex.simulate(ex.schedule("zb_v", n_ranks=p, n_micro_batches=m, costs=costs), costs)
    span = trace.span_per_rank.max()
    assert (span - 2 * m * (f + i + w)) / span == pytest.approx(rate, abs=5.1e-5)


def test_costs_may_differ_by_stage_and_micro_batch_and_be_a_ranks_share() -> None:
    slow_last = np.ones(6)
    slow_last[5] = 3.0
    by_stage = ex.schedule("zb_v", n_ranks=3, n_micro_batches=8, costs=ex.Costs(forward=slow_last))
    by_both = ex.schedule(
        "zb_v", n_ranks=3, n_micro_batches=8, costs=ex.Costs(forward=np.repeat(slow_last[:, None], 8, axis=1))
    )
    assert str(by_stage) == str(by_both) != str(ex.schedule("zb_v", n_ranks=3, n_micro_batches=8))
    share = ex.schedule("zb_v", n_ranks=3, n_micro_batches=8, costs=ex.Costs.per_rank_share(forward=2.0))
    assert str(share) == str(ex.schedule("zb_v", n_ranks=3, n_micro_batches=8))


def test_a_larger_limit_holds_more_and_too_small_a_one_is_refused() -> None:
    costs = ex.Costs(forward=1.0, latency=0.5, activation_bytes=10.0)
    numbers = {"n_ranks": 4, "n_micro_batches": 16}
    peaks, spans = [], []
    for limit in (80, 120, 160):
        trace = ex.simulate(ex.schedule("zb_v", **numbers, costs=costs, memory_limit=limit), costs)
        peaks.append(int(trace.peak_in_flight.max()) * 10)
        spans.append(trace.span_per_rank.max())
        assert peaks[-1] <= limit
    assert spans[0] > spans[1] >= spans[2]
    with pytest.raises(ScheduleError, match="no order within a memory_limit of 15 bytes a rank; try 80") as caught:
        ex.schedule("zb_v", **numbers, costs=costs, memory_limit=15)
    assert (caught.value.argument, caught.value.legal) == ("memory_limit", (80,))
    large = ex.Costs(activation_bytes=2**31)
    with pytest.raises(ScheduleError, match=r"within a memory_limit of 3 GiB a rank; try 17179869184 \(16 GiB\)"):
        ex.schedule("zb_v", **numbers, costs=large, memory_limit=3 * 2**30)
    for wrong in (0, -1.0, float("nan"), "much"):
        with pytest.raises(ScheduleError, match=r"memory_limit is a number of bytes above 0; got .*; try 80"):
            ex.schedule("zb_v", **numbers, costs=costs, memory_limit=wrong)


def test_what_is_no_cost_and_no_dialect_is_refused() -> None:
    with pytest.raises(ScheduleError, match="searches with Costs; got int; try Costs"):
        ex.schedule("zb_v", n_ranks=2, n_micro_batches=4, costs=1)
    with pytest.raises(ScheduleError, match="zb_v has the dialects authors, torch; got 'megatron'; try authors"):
        ex.schedule("zb_v", n_ranks=2, n_micro_batches=4, dialect="megatron")
