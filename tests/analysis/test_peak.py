"""Who holds memory at the peak, against drawings."""

import pytest

import explorer as ex
from explorer.analysis.peak import peak_parts
from explorer.core import Category


def simulated(name="1f1b", n_ranks=4, n_micro_batches=8, **costs):
    costs = {"activation_bytes": 100, "parameter_bytes": 7, **costs}
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def test_peak_holders_are_the_micro_batches_of_the_warm_up():
    # rank 1  .  F0 F1 F2 …: three in flight from 3 on
    frame = ex.peak_holders(simulated(), 1)
    held = frame[frame["category"] == "activations"]
    assert held[["stage", "micro_batch", "bytes", "since"]].to_numpy().tolist() == [
        [1, 0, 100, 1],
        [1, 1, 100, 2],
        [1, 2, 100, 3],
    ]
    assert frame.loc[frame["category"] != "activations", "bytes"].tolist() == [7, 7]
    assert frame["time"].unique().tolist() == [3]


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_v", "dualpipe", "seq1f1b"])
def test_peak_holders_sum_to_the_peak_on_every_rank(name):
    trace = simulated(name)
    for rank, peak in enumerate(ex.peak_bytes(trace).tolist()):
        assert ex.peak_holders(trace, rank)["bytes"].sum() == peak


def test_peak_holders_are_of_the_fullest_rank_and_the_largest_first():
    frame = ex.peak_holders(simulated("gpipe", activation_bytes=[1, 9, 2, 3]))
    assert frame["rank"].unique().tolist() == [1]
    assert frame["bytes"].is_monotonic_decreasing


def test_peak_holders_at_another_moment():
    # rank 0  F0 F1 F2 F3 …
    frame = ex.peak_holders(simulated(parameter_bytes=0), 0, time=1.5)
    assert frame["micro_batch"].tolist() == [0, 1]


def test_peak_holders_of_several_steps_are_those_of_one():
    one = simulated().memory
    later = {"step": one.step + 1, "time": one.time + 50, "delta": one.delta * 2}
    two = ex.MemoryChanges(**{**one.columns(), **later})
    trace = ex.Trace(simulated().events, simulated().program, ex.MemoryChanges.concatenate(one, two))
    assert ex.peak_holders(trace, 0)["bytes"].tolist() == [200] * 4 + [14, 14]


def test_peak_holders_where_nothing_is_known():
    assert len(ex.peak_holders(simulated(activation_bytes=0, parameter_bytes=0))) == 0


@pytest.mark.parametrize("rank", [-1, 4, True, "0"])
def test_peak_holders_refuse_a_rank_that_is_not_there(rank):
    with pytest.raises(ex.ExplorerError, match="rank is a whole number from 0 to 3"):
        ex.peak_holders(simulated(), rank)


@pytest.mark.parametrize("name", ["1f1b", "zb_v", "dualpipe"])
def test_peak_parts_are_what_each_rank_holds_when_it_holds_the_most(name):
    trace = simulated(name, optimizer_bytes=14, message_bytes=3)
    parts = peak_parts(trace)
    assert parts.sum(axis=1).tolist() == ex.peak_bytes(trace).tolist()
    for rank in range(trace.n_ranks):
        held = ex.peak_holders(trace, rank).groupby("category", observed=True)["bytes"].sum()
        assert {one.name.lower(): size for one, size in zip(Category, parts[rank], strict=True) if size} == dict(held)


def test_peak_parts_of_a_trace_without_bytes_are_nothing():
    assert not peak_parts(simulated(activation_bytes=0, parameter_bytes=0)).any()
