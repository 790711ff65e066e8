"""Costs: what is given, what follows from it, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import CostError, InputError

SPLIT = ex.Program.from_orders("split", ex.Placement.looped(1), 1, ["0F0 0I0 0W0"])
WHOLE = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [1, 1, 1]),  # B = 2F, split evenly
        ({"backward": 3.0}, [1, 1.5, 1.5]),
        ({"backward": 3.0, "backward_input": 1.0}, [1, 1, 2]),
        ({"backward": 3.0, "backward_weight": 1.0}, [1, 2, 1]),
        ({"backward_input": 0.7, "backward_weight": 0.4}, [1, 0.7, 0.4]),
        ({"fixed": 0.5}, [1.5, 1.5, 1.5]),
        ({"time_factor": 2.0}, [2, 2, 2]),
        ({"recompute": 0.25}, [1, 1.25, 1]),
    ],
)
def test_backward_splits_as_given(given: dict[str, float], expected: list[float]) -> None:
    np.testing.assert_allclose(ex.Costs(**given).action_seconds(SPLIT), expected)


def test_full_backward_is_the_sum_of_its_parts_where_both_are_given() -> None:
    costs = ex.Costs(backward_input=0.7, backward_weight=0.4)
    assert costs.action_seconds(WHOLE)[WHOLE.kind == ex.Kind.B] == pytest.approx(1.1)


def test_costs_by_stage_and_micro_batch_land_on_their_actions() -> None:
    costs = ex.Costs(forward=[[1, 2], [3, 4]], backward=[5, 6], time_factor=[1, 10])
    seconds = dict(zip(map(str, map(WHOLE.action, range(8))), costs.action_seconds(WHOLE), strict=True))
    assert seconds["0F0"] == 1
    assert seconds["0F1"] == 2
    assert seconds["1F1"] == 40
    assert seconds["1B0"] == 60


def test_a_long_micro_batch_takes_longer_on_every_stage() -> None:
    costs = ex.Costs(forward=[1, 2], backward=4, fixed=0.5, micro_batch_factor=[1, 3])
    seconds = dict(zip(map(str, map(WHOLE.action, range(8))), costs.action_seconds(WHOLE), strict=True))
    assert [seconds[name] for name in ("0F0", "0F1", "1F0", "1F1", "0B0", "1B1")] == [1.5, 4.5, 2.5, 7.5, 4.5, 13.5]
    both = ex.Program.from_orders("overlap", ex.Placement.looped(1), 2, ["0F0 (0F1;0B0) 0B1"])
    overlapped = ex.Costs(overlap=2.0, micro_batch_factor=[1, 3])  # F1 with B0, by the forward's
    assert overlapped.slot_seconds(both).tolist() == [1, 6, 6]
    updates = ex.add_updates(WHOLE)
    assert ex.Costs(optimizer=1, micro_batch_factor=[2, 3]).action_seconds(updates)[-1] == 1
    with pytest.raises(CostError, match=r"micro_batch_factor is a number or \(2,\), by micro-batch"):
        ex.simulate(WHOLE, ex.Costs(micro_batch_factor=[1, 2, 3]))
    with pytest.raises(CostError, match="micro_batch_factor is above 0"):
        ex.Costs(micro_batch_factor=0)


def test_latency_between_ranks_is_from_row_to_column() -> None:
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=1)
    assert ex.simulate(program, ex.Costs(latency=[[9, 0.5], [7, 9]])).makespan == 2.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forward": -1}, "forward is 0 or more, .*; got -1; try 0"),
        ({"backward": float("nan")}, "backward is 0 or more, .*; got nan"),
        ({"forward": float("inf")}, "forward is 0 or more, .*; got inf"),
        ({"bandwidth": 0}, "bandwidth is above 0, at most .* or infinite; got 0; try 1"),
        ({"time_factor": 0}, "time_factor is above 0"),
        ({"forward": None}, "forward is 0 or more, .*; got None"),
        ({"latency": None}, "latency is 0 or more, .*; got None"),
        ({"forward": 1e308}, r"forward is 0 or more, .*; got 1e\+308"),
        ({"forward": 10**400}, "forward is a number or an array of numbers; got '1000"),
        ({"fixed": [1, 2]}, r"fixed is one number, not several; got shape \(2,\)"),
        ({"latency": "fast"}, "latency is a number or an array of numbers; got 'fast'"),
    ],
)
def test_costs_refuse_what_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(CostError, match=message) as caught:
        ex.Costs(**given)  # type: ignore[arg-type]
    assert caught.value.argument == next(iter(given))


def test_costs_refuse_the_wrong_shape() -> None:
    with pytest.raises(CostError, match=r"forward is a number, \(2,\) or \(2, 2\), by stage and .*; got shape \(3,\)"):
        ex.simulate(WHOLE, ex.Costs(forward=[1, 2, 3]))
    with pytest.raises(CostError, match=r"latency is a number or \(2, 2\), from rank to rank; got shape \(2,\)"):
        ex.simulate(WHOLE, ex.Costs(latency=[1, 2]))
    with pytest.raises(CostError, match=r"time_factor is a number or \(2,\), by rank"):
        ex.simulate(WHOLE, ex.Costs(time_factor=[1, 2, 3]))
    with pytest.raises(CostError, match=r"forward is a number or \(2,\), by rank, for a rank's share"):
        ex.Costs.per_rank_share(forward=[1, 2, 3]).for_program(WHOLE)


def test_a_ranks_share_may_differ_by_rank() -> None:
    program = ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=2, n_chunks=2)
    costs = ex.Costs.per_rank_share(forward=[1, 3], latency=0.5).for_program(program)
    assert np.asarray(costs.forward).tolist() == [0.5, 1.5, 0.5, 1.5]
    assert costs.latency == 0.5


def test_recompute_is_charged_where_it_runs() -> None:
    once = ex.Costs(recompute=0.25).action_seconds(SPLIT)
    twice = ex.Costs(recompute=0.25, recompute_for="both").action_seconds(SPLIT)
    assert (once.tolist(), twice.tolist()) == ([1, 1.25, 1], [1, 1.25, 1.25])


def test_jitter_keeps_the_mean_has_the_deviation_and_repeats() -> None:
    program = ex.schedule("1f1b", n_ranks=8, n_micro_batches=512)
    costs = ex.Costs(forward=1.0, backward=1.0, jitter=0.2, seed=3)
    seconds = costs.action_seconds(program)
    assert seconds.mean() == pytest.approx(1.0, abs=0.01)  # 8,192 draws: the mean's own deviation is 0.0022
    assert seconds.std() == pytest.approx(0.2, rel=0.05)
    assert np.array_equal(seconds, costs.action_seconds(program))
    assert not np.array_equal(seconds, ex.Costs(forward=1.0, backward=1.0, jitter=0.2, seed=4).action_seconds(program))


def test_a_delay_is_of_one_action() -> None:
    costs = ex.Costs(delays={"1F0": 0.5})
    late = costs.action_seconds(WHOLE) - ex.Costs().action_seconds(WHOLE)
    assert [str(WHOLE.action(k)) for k in np.flatnonzero(late)] == ["1F0"]
    assert late.sum() == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recompute_for": "all"}, 'recompute_for is "inputs" or "both"; got .all.'),
        ({"seed": 1.5}, "seed is a whole number of at least 0; got 1.5"),
        ({"jitter": [0.1]}, "jitter is one number"),
        ({"jitter": -0.1}, "jitter is 0 or more"),
        ({"delays": [1]}, "delays are action"),
        ({"delays": {"x": 1}}, "an action reads <stage><kind><micro-batch>.* got .x."),
        ({"delays": {"0F0": -1}}, "delays is 0 or more"),
    ],
)
def test_what_varies_is_checked(given: dict[str, object], message: str) -> None:
    with pytest.raises(CostError, match=message):
        ex.Costs(**given)


def test_a_delay_of_no_action_is_refused() -> None:
    with pytest.raises(CostError, match="it has no 7F0"):
        ex.simulate(WHOLE, ex.Costs(delays={"7F0": 1.0}))


@pytest.mark.parametrize("value", ["1", b"1", 1j, np.ones(2) * 1j])
@pytest.mark.parametrize("name", ["fixed", "jitter", "bandwidth", "forward"])
def test_what_is_no_real_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(CostError, match=f"{name} is a number or an array of numbers"):
        ex.Costs(**{name: value})


def test_bytes_that_no_64_bits_hold_are_refused() -> None:
    with pytest.raises(CostError, match=r"activation_bytes is 0 or more, at most 1e\+15"):
        ex.Costs(activation_bytes=1e100)


@pytest.mark.parametrize("wait", [3, None, ("0F0", "0F1"), ("0F0", "0F1", "a")])
def test_a_wait_of_another_form_is_refused(wait: object) -> None:
    with pytest.raises(InputError, match="a wait is two actions"):
        WHOLE.with_waits(wait)
