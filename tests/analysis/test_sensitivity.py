"""What would be gained: each row against a simulation with that much less."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex

COSTS = ex.Costs(
    forward=[1, 1.4, 0.8, 1],
    backward=[2, 2.5, 2, 2.2],
    latency=np.full((4, 4), 0.2),
    time_factor=[1, 1, 1.3, 1],
)


def less(costs, row, *, share=0.1):
    """The costs in which what a row names takes less."""
    number = row["name"].split(" ")
    if row.of == "stage":
        scale = np.where(np.arange(4) == int(number[1]), 1 - share, 1)
        return replace(costs, forward=costs.forward * scale, backward=costs.backward * scale)
    if row.of == "rank":
        return replace(costs, time_factor=costs.time_factor * np.where(np.arange(4) == int(number[1]), 1 - share, 1))
    if row.of == "kind":
        name = {"F": "forward", "B": "backward"}[row["name"]]
        return replace(costs, **{name: np.asarray(getattr(costs, name)) * (1 - share)})
    latency = costs.latency.copy()
    latency[int(number[1]), int(number[3])] *= 1 - share
    return replace(costs, latency=latency)


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_every_gain_is_what_a_simulation_with_less_gives(name, share):
    program = ex.schedule(name, n_ranks=4, n_micro_batches=6)
    trace = ex.simulate(program, COSTS)
    found = ex.sensitivity(trace, less=share)
    assert found.of.value_counts().to_dict() == {"stage": 4, "link": 6, "rank": 4, "kind": 2}
    assert found.gain.is_monotonic_decreasing
    for _, row in found.iterrows():
        after = ex.simulate(program, less(COSTS, row, share=share)).makespan
        assert row.makespan == pytest.approx(after)
        assert row.gain == pytest.approx(trace.makespan - after, abs=1e-9)
        assert row.share == pytest.approx(row.gain / trace.makespan, abs=1e-12)


def test_an_overlapped_slot_is_shared_among_its_actions():
    # one slot of F and B at once, 3 s: each kind has half of it
    program = ex.Program.from_orders("own", ex.Placement.looped(1), 2, ["0F0 (0F1;0B0) 0B1"])
    found = ex.sensitivity(ex.simulate(program), less=1.0).set_index("name")
    assert found.gain["F"] == 1 + 1.5
    assert found.gain["B"] == 2 + 1.5


def test_explicit_messages_are_links_too():
    program = ex.add_messages(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2))
    found = ex.sensitivity(ex.simulate(program, ex.Costs(latency=1.0), messages="rendezvous"), less=1.0)
    gain = found.set_index("name").gain
    # by rendezvous a rank stands at its sends: those of both micro-batches are on the path
    assert gain["rank 0 → 1"] > 0
    assert gain["rank 1 → 0"] > 0


def measured(makespans):
    """A trace of one rank whose steps take this long."""
    program = ex.schedule("naive", n_ranks=1, n_micro_batches=1)
    begin = np.cumsum([0, *makespans[:-1]])
    tables = [
        ex.Events.of(
            step=step,
            rank=0,
            stage=0,
            micro_batch=0,
            kind=[0, 1],
            slot=[0, 1],
            start=[b, b + s / 3],
            end=[b + s / 3, b + s],
        )
        for step, (b, s) in enumerate(zip(begin, makespans, strict=True))
    ]
    return ex.Trace(ex.Events.concatenate(*tables), program)


def test_of_several_steps_the_one_with_the_median_makespan_counts_and_never_the_first():
    # NVIDIA/nccl#552: steps of 120, 33, 33, 33 ms take 33 ms, not their mean, 54.75
    found = ex.sensitivity(measured([120, 33, 33, 33]), less=0.5).set_index("name")
    assert found.gain["stage 0"] == pytest.approx(16.5)
    assert ex.sensitivity(measured([1, 10, 30, 20]), less=0.5).gain.max() == pytest.approx(10)


# ── remedies ────────────────────────────────────────────────────────────────────────────────────────────────────


def gain_of(trace, cause):
    """Gain of the only remedy for a cause."""
    return ex.gains(trace).query(f"cause == '{cause}'").gain.item()


def test_room_is_gained_by_what_a_program_without_limits_takes():
    free = ex.schedule("forward_only", n_ranks=3, n_micro_batches=5)
    bound = free.with_waits(("1F0", "0F2", 2.0))
    assert gain_of(ex.simulate(bound), "memory") == ex.simulate(bound).makespan - ex.simulate(free).makespan == 2


@pytest.mark.parametrize("rule", ["rendezvous", "ordered"])
def test_messages_that_hold_nobody_up_gain_what_the_rule_costs(rule):
    program = ex.add_messages(ex.schedule("gpipe", n_ranks=4, n_micro_batches=6))
    costs = ex.Costs(forward=[1, 1.5, 1, 1.2], latency=0.8)
    trace = ex.simulate(program, costs, messages=rule)
    assert trace.makespan - gain_of(trace, "queue") == pytest.approx(ex.simulate(program, costs).makespan)


@pytest.mark.parametrize("rule", ["ordered", "two_streams"])
@pytest.mark.parametrize("latency", [0.5, 1.0])
def test_the_rule_that_was_simulated_holds_though_another_gives_the_same_times(rule, latency):
    # while rank 0 is slow nobody stands at a message; once it is not, each receive waits for the one before
    program = ex.add_messages(ex.schedule("forward_only", n_ranks=2, n_micro_batches=4))
    costs = ex.Costs(latency=latency, time_factor=[3, 1])
    trace = ex.simulate(program, costs, messages=rule)
    quick = ex.simulate(program, ex.Costs(latency=latency), messages=rule).makespan
    assert quick == 1 + 4 * (latency + 1)
    assert trace.makespan - gain_of(trace, "straggler") == pytest.approx(quick)


def test_costs_of_another_size_are_refused_in_a_sentence():
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    for factor in ([], [1.0, 2.0, 3.0]):
        with pytest.raises(ex.CostError, match=r"time_factor is a number or \(2,\), by rank; got shape"):
            ex.idle_summary(replace(trace, costs=ex.Costs(time_factor=factor)))


def test_a_shared_link_gains_what_it_would_without_sharing():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    alone = ex.Costs(bandwidth=50, message_bytes=100)
    shared = replace(alone, links=ex.node_links(4, ranks_per_node=2))
    trace = ex.simulate(program, shared)
    assert gain_of(trace, "queue") == pytest.approx(trace.makespan - ex.simulate(program, alone).makespan)


def test_one_heavy_stage_brought_to_the_others_mean_gains_what_a_simulation_says():
    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=5)
    trace = ex.simulate(program, ex.Costs(forward=[1, 1, 2], backward=[2, 3, 4]))
    row = ex.gains(trace).query("cause == 'imbalance' and stage == 2").iloc[0]
    lighter = ex.simulate(program, ex.Costs(forward=[1, 1, 1], backward=[2, 3, 2.5]))
    assert row.makespan == pytest.approx(lighter.makespan)
    assert row.remedy == "stage 2 takes no longer than the others' mean"
    assert row["rank"] == 2


def test_all_hiccups_at_once_are_a_remedy_beside_each():
    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=5)
    trace = ex.simulate(program, ex.Costs(delays={"0F0": 1.0, "2B3": 2.0}))
    found = ex.gains(trace).query("cause == 'hiccup'").set_index("remedy")
    assert found.makespan["all 2 slow actions take their medians"] == ex.simulate(program).makespan
    assert (
        found.gain["all 2 slow actions take their medians"]
        > found.gain["B of micro-batch 3 on stage 2 takes its median"]
    )


def test_a_slow_rank_of_a_measured_step_gains_by_its_own_median():
    steps = [ex.Costs(), ex.Costs(), ex.Costs(time_factor=[1, 1.5, 1])]
    program = ex.schedule("gpipe", n_ranks=3, n_micro_batches=3)
    tables = []
    for number, costs in enumerate([*steps, *steps[1:], steps[2]]):
        table = ex.simulate(program, costs).events.columns()
        tables.append(ex.Events.of(**{**table, "step": number}))
    # of the five steps that count three are slow: that is then what is usual
    found = ex.gains(ex.Trace(ex.Events.concatenate(*tables), program))
    assert "straggler" not in set(found.cause)
    # with two even steps more it is not
    tables.extend(ex.Events.of(**{**ex.simulate(program).events.columns(), "step": n}) for n in (6, 7))
    trace = ex.Trace(ex.Events.concatenate(*tables), program)
    assert set(ex.idle_causes(trace).query("cause == 'straggler'").at_rank) == {1}


def test_nothing_is_gained_where_there_is_nothing_to_gain():
    alone = ex.simulate(ex.schedule("naive", n_ranks=1, n_micro_batches=3))
    found = ex.gains(alone)
    assert len(found) == 0
    assert list(found.columns) == [
        *("cause", "remedy", "rank", "stage", "micro_batch", "gain", "share", "makespan", "promise"),
    ]


def test_bounds_come_last_and_say_so():
    found = ex.gains(ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8), ex.Costs(latency=0.1)))
    assert found.promise.tolist() == sorted(found.promise, key=["exact", "bound"].index)
    bubble = found.query("cause == 'bubble'").iloc[0]
    assert bubble.makespan == 24  # a rank's own work: 8 (F + B)


@pytest.mark.parametrize(("clock", "is_told"), [("simulated", True), ("real", False), ("virtual", False)])
def test_what_brings_less_than_another_run_would_show_is_told_only_of_a_simulation(clock, is_told):
    # naive on two ranks: of its 6 s, two messages on their way for 1 ms each
    trace = ex.simulate(ex.schedule("naive", n_ranks=2, n_micro_batches=1), ex.Costs(latency=1e-3))
    found = ex.gains(replace(trace, clock=clock))
    assert ("latency" in found["cause"].tolist()) == is_told
    assert (found["share"] >= 0.002).all() != is_told


@pytest.mark.parametrize("sharing", ["fair", "queue"])
@pytest.mark.parametrize("bandwidth", [1.0, 0.5, 0.2])
def test_where_messages_share_links_only_what_cannot_move_them_is_promised(sharing, bandwidth):
    # a straggler that is mended sends earlier, into a link that is then taken: by queues 0.2 it gains nothing at all
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    slow = ex.Costs(
        message_bytes=1.0,
        bandwidth=bandwidth,
        latency=0.1,
        links=np.zeros((4, 4), int),
        sharing=sharing,
        time_factor=[1, 1, 2, 1],
    )
    found = ex.gains(ex.simulate(program, slow)).set_index("cause")
    exact = {"bandwidth": replace(slow, bandwidth=np.inf), "queue": replace(slow, links=None)}
    for cause, costs in exact.items():
        row = found.loc[cause]
        assert row.promise == "exact"
        assert row.makespan == pytest.approx(ex.simulate(program, costs).makespan)
    assert set(found.loc[["straggler", "latency"]].promise) == {"estimate"}
    best = ex.gains(ex.simulate(program, replace(slow, links=None))).set_index("cause")
    assert found.loc["order"].makespan == pytest.approx(best.loc["order"].makespan)
    assert set(best.loc[["straggler", "latency", "bandwidth"]].promise) == {"exact"}


@pytest.mark.parametrize("sharing", ["fair", "queue"])
@pytest.mark.parametrize("name", ["gpipe", "1f1b", "v_min", "zb_h1"])
@pytest.mark.parametrize("rule", ["rendezvous", "buffered", "ordered", "two_streams", "coalesced"])
def test_explicit_messages_on_shared_links_are_explained_under_every_rule(rule, name, sharing):
    program = ex.add_messages(ex.schedule(name, n_ranks=4, n_micro_batches=5))
    costs = ex.Costs(latency=0.1, message_bytes=1.0, links=ex.node_links(4, ranks_per_node=2), sharing=sharing)
    costs = replace(costs, bandwidth=0.8, forward=np.linspace(1, 1.5, program.n_stages))
    try:
        trace = ex.simulate(program, costs, messages=rule)
    except ex.CircularWaitError:
        assert rule != "buffered"  # nothing is seen of what cannot run
        return
    assert ex.idle_summary(trace).host.sum() == pytest.approx(0)
    found = ex.gains(trace).set_index("cause")
    without = {
        "bandwidth": ex.simulate(program, replace(costs, bandwidth=np.inf), messages=rule),
        "queue": ex.simulate(program, replace(costs, links=None)),
    }
    for cause in set(without) & set(found.index):
        assert found.loc[cause].promise == "exact"
        assert found.loc[cause].makespan == pytest.approx(without[cause].makespan)
