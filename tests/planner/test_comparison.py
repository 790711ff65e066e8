"""Schedules side by side, against the formulas and bounds their papers give."""

import numpy as np
import pytest

import explorer as ex
from explorer.schedules import REGISTRY


def table(schedules, n_ranks=4, n_micro_batches=8, **options):
    costs = {"forward": 1.0, "backward": 2.0, "activation_bytes": 100, "parameter_bytes": 10}
    share = ex.Costs.per_rank_share(**{**costs, **options.pop("costs", {})})
    return ex.comparison(schedules, n_ranks=n_ranks, n_micro_batches=n_micro_batches, costs=share, **options).set_index(
        "schedule"
    )


@pytest.mark.parametrize(("n_ranks", "n_micro_batches"), [(2, 4), (4, 8), (8, 32)])
def test_gpipe_and_1f1b_take_as_long_and_hold_m_and_p(n_ranks, n_micro_batches):
    found = table(["gpipe", "1f1b"], n_ranks, n_micro_batches)
    assert (found["makespan"] == (n_micro_batches + n_ranks - 1) * 3).all()
    assert found["peak_in_flight"].tolist() == [n_micro_batches, n_ranks]
    # parameters and gradients, 10 each, beside the activations
    assert found["peak_bytes"].tolist() == [20 + 100 * n_micro_batches, 20 + 100 * n_ranks]
    assert found["bubble_ratio"].to_numpy() == pytest.approx((n_ranks - 1) / (n_micro_batches + n_ranks - 1))
    assert found["bubble_overhead"].to_numpy() == pytest.approx((n_ranks - 1) / n_micro_batches)


def test_zb_h1_idles_a_third_of_1f1b():
    # (P−1)(F+I−W) against (P−1)(F+B), all thirds of a micro-batch alike; Qi et al. 2023, arXiv:2401.10241, table 2
    found = table(["1f1b", "zb_h1"])
    idle = found["makespan"] - 8 * 3
    assert idle["zb_h1"] == pytest.approx(idle["1f1b"] / 3)
    assert found["splits_backward"].tolist() == [False, True]
    assert found["peak_in_flight"].tolist() == [4, 4]


def test_interleaving_divides_the_bubble_and_multiplies_the_messages():
    # (P−1)(F+B)/v; each of v·P − 1 borders is crossed M times each way
    found = table(["1f1b", "interleaved_1f1b"], costs={"message_bytes": 5})
    assert found["makespan"].tolist() == [24 + 9, 24 + 9 / 2]
    assert found["messages"].tolist() == [2 * 8 * 3, 2 * 8 * 7]
    assert found["bytes_sent"].tolist() == [240, 560]


def test_weight_copies_are_counted_on_the_fullest_rank():
    found = table(["1f1b", "dualpipe", "chimera", "pipedream", "pipedream_2bw", "zb_v"])
    assert found["weight_copies"].tolist() == [1, 2, 2, 4, 2, 1]


@pytest.mark.parametrize("name", [name for name in REGISTRY if REGISTRY[name].trains])
def test_every_schedule_is_given_the_same_work(name):
    # busy time of all ranks: ranks × makespan × (1 − bubble ratio), 3 seconds a micro-batch and rank
    row = table([name]).loc[name]
    assert 4 * row["makespan"] * (1 - row["bubble_ratio"]) == pytest.approx(4 * 8 * 3)


def test_over_best_leaves_out_what_is_not_legal_and_what_only_runs_forward():
    found = table(["gpipe", "1f1b", "zb_h1", "forward_only"], memory_limit=450)
    assert found["legal"].tolist() == [False, True, True, True]
    assert found["over_best"].tolist()[:3] == pytest.approx([33 / 27 - 1, 33 / 27 - 1, 0])
    assert np.isnan(found["over_best"]["forward_only"])


def test_a_memory_limit_says_who_needs_how_much_more():
    found = table(["gpipe"], memory_limit=450)
    assert found["reason"]["gpipe"] == "rank 0 holds 820 bytes at its peak, 370 bytes more than the limit of 450 bytes"


def test_what_is_too_much_is_said_in_the_units_of_memory():
    # GPipe holds all 8 micro-batches: 8 × 3 GiB against 16 GiB
    costs = ex.Costs.per_rank_share(activation_bytes=3 * 2**30)
    found = ex.comparison(["gpipe"], n_ranks=4, n_micro_batches=8, costs=costs, memory_limit=16 * 2**30)
    assert found["reason"][0] == "rank 0 holds 24 GiB at its peak, 8 GiB more than the limit of 16 GiB"


def test_a_schedule_that_searches_uses_the_memory_that_is_left_for_activations():
    # 20 bytes of weights and gradients; five micro-batches fit below 520, four below 519
    late = {"latency": 1.0}
    assert table(["zb_1p"], memory_limit=520, costs=late)["peak_in_flight"]["zb_1p"] == 5
    assert table(["zb_1p"], memory_limit=519, costs=late)["peak_in_flight"]["zb_1p"] == 4
    assert table(["zb_1p"], memory_limit=15)["legal"]["zb_1p"] == np.False_
    # and the buffers that messages are received in need room too
    row = table(["zb_1p"], memory_limit=519 + 100, costs={"message_bytes": 50, **late}).loc["zb_1p"]
    assert (row["legal"], row["peak_in_flight"]) == (np.True_, 4)


@pytest.mark.parametrize("name", ["zb_1p", "zb_v"])
@pytest.mark.parametrize(("n_ranks", "n_micro_batches"), [(2, 8), (4, 8), (8, 4)])
def test_a_limit_above_what_a_search_needs_changes_nothing(name, n_ranks, n_micro_batches):
    # it filled the memory for nothing, and ZB-V at 8 × 4 was said not to fit into what it fits into
    free = table([name], n_ranks, n_micro_batches).loc[name]
    for above in (0, 50, 400):
        limited = table([name], n_ranks, n_micro_batches, memory_limit=free["peak_bytes"] + above).loc[name]
        assert limited["legal"]
        assert (limited["makespan"], limited["peak_bytes"]) == (free["makespan"], free["peak_bytes"])


def test_a_program_of_ones_own_is_compared_too():
    mine = ex.from_grid("F0 F1 .  .  B0 B1\n.  F0 F1 B0 B1 .")
    found = table(["1f1b", mine], 2, 2)
    assert found["makespan"].iloc[1] == found["makespan"]["1f1b"] == 9
    with pytest.raises(ex.ExplorerError, match="compared at 4 ranks and 8 micro-batches"):
        table(["1f1b", mine])


def test_chunks_are_for_those_that_allow_them():
    found = table(["1f1b", "zb_v", "interleaved_1f1b"], n_chunks=4)
    assert found["n_chunks"].tolist() == [1, 2, 4]
    assert found["makespan"]["interleaved_1f1b"] == 24 + 9 / 4


@pytest.mark.parametrize(
    ("schedules", "options", "message"),
    [
        (["1f1"], {}, "did you mean 1f1b"),
        ([], {}, "schedules are names in a list"),
        (3, {}, "schedules are names in a list; got '3'"),
        (["1f1b"], {"costs": ex.Costs()}, "costs are of a rank's share"),
        (["1f1b"], {"memory_limit": 0}, "memory_limit is bytes of a rank, above 0; got 0"),
        (["1f1b"], {"n_ranks": "4"}, "n_ranks is a whole number; got '4'"),
    ],
)
def test_what_cannot_be_compared_is_refused(schedules, options, message):
    with pytest.raises(ex.ExplorerError, match=message):
        ex.comparison(schedules, **{"n_ranks": 4, "n_micro_batches": 8, **options})


UNEVEN = {
    "micro_batch_factor": [1.0] * 7 + [2.0],
    "links": ex.node_links(4, ranks_per_node=2),
    "delays": {"0F1": 1.0},
    "message_delays": {"1F2": 0.5},
    "forward": [1.0, 1.5, 1.0, 1.0],
    "time_factor": [1.0, 1.0, 1.0, 2.0],
}


@pytest.mark.parametrize("name", ["zb_1p", "zb_2p", "zb_v"])
@pytest.mark.parametrize("cost", UNEVEN)
@pytest.mark.parametrize("limit", [None, 1000])
def test_a_search_takes_every_cost_and_does_no_worse_than_told_none(name, cost, limit):
    costs = {cost: UNEVEN[cost], "bandwidth": 1e3, "message_bytes": 10}
    found = table([name], memory_limit=limit, costs=costs).loc[name]
    assert found["legal"], found["reason"]
    share = ex.Costs.per_rank_share(**{"forward": 1.0, "backward": 2.0, "activation_bytes": 100, **costs})
    program = ex.schedule(name, n_ranks=4, n_micro_batches=8)
    assert found["makespan"] <= ex.simulate(program, share.for_program(program)).makespan * (1 + 1e-9)
    program = ex.schedule(name, n_ranks=4, n_micro_batches=8, costs=share)  # nor does it refuse them by itself
    assert program.n_actions == ex.schedule(name, n_ranks=4, n_micro_batches=8).n_actions


@pytest.mark.parametrize("name", ["zb_1p", "zb_2p", "zb_v"])
def test_a_search_finds_a_whole_order_whatever_the_shares(name):
    # a rank behind was given all its forwards though the one before it had not, and that one never got its last
    draw = np.random.default_rng(3)
    cases = [(6, 8, [1.17, 1.94, 1.04, 1.04, 1.36, 1.8])]
    for _ in range(100):
        n_ranks = int(draw.choice([2, 4, 6]))
        cases.append((n_ranks, int(draw.choice([4, 8, 12])), draw.uniform(1, draw.choice([1.1, 1.5, 2.0]), n_ranks)))
    for n_ranks, n_micro_batches, forward in cases:
        costs = ex.Costs.per_rank_share(forward=list(forward), activation_bytes=1000)
        numbers = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches}
        for limit in (None, 1e9):
            program = ex.schedule(name, costs=costs, memory_limit=limit, **numbers)
            assert ex.check(program) is program
