"""Two hundred random programs of every schedule: causes add up, and what is promised of each is what happens."""

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.core.metrics import rank_times

N_PROGRAMS = 200
OPTIONS = ({}, {"n_chunks": 2}, {"n_segments": 2})


def random_program(rng):
    """A program of a random schedule and size."""
    names = list(ex.schedules().index)
    while True:
        name, options = names[rng.integers(len(names))], OPTIONS[rng.integers(len(OPTIONS))]
        try:
            return ex.schedule(
                name, n_ranks=int(rng.integers(2, 5)), n_micro_batches=int(rng.integers(1, 9)), **options
            )
        except ex.ExplorerError:  # not for these numbers
            continue


def random_costs(rng, program):
    """Unequal stages, and at random messages, one slow rank, jitter or late actions."""
    n_stages = program.n_stages
    factor = np.ones(program.n_ranks)
    if rng.random() < 0.4:
        factor[rng.integers(program.n_ranks)] = rng.uniform(1.2, 2.0)
    late = rng.choice(np.flatnonzero(program.kind <= ex.Kind.W), size=2)
    return ex.Costs(
        forward=rng.uniform(0.5, 2.0, n_stages),
        backward_input=rng.uniform(0.5, 2.0, n_stages),
        backward_weight=rng.uniform(0.3, 1.0, n_stages),
        latency=float(rng.choice([0.0, rng.uniform(0.0, 0.5)])),
        message_bytes=float(rng.choice([0.0, 10.0])),
        bandwidth=rng.uniform(20.0, 200.0),
        jitter=float(rng.choice([0.0, 0.0, 0.2])),
        seed=int(rng.integers(1000)),
        time_factor=factor,
        delays={str(program.action(int(i))): rng.uniform(0.5, 4.0) for i in late} if rng.random() < 0.4 else {},
    )


@pytest.fixture(scope="module")
def cases():
    """Programs, costs and what their simulation gives."""
    rng, found = np.random.default_rng(20), []
    for _ in range(N_PROGRAMS):
        program = random_program(rng)
        costs = random_costs(rng, program)
        found.append((program, costs, ex.simulate(program, costs)))
    return found


def without(program, costs, row):
    """The costs from which the cause that a row of gains names has been removed; None where costs cannot say so."""
    if row.cause == "latency":
        return replace(costs, latency=0.0)
    if row.cause == "bandwidth":
        return replace(costs, bandwidth=np.inf)
    if row.cause == "straggler":
        return replace(costs, time_factor=np.where(np.arange(program.n_ranks) == row["rank"], 1.0, costs.time_factor))
    if row.cause == "hiccup" and row.micro_batch >= 0 and not costs.jitter and program.n_micro_batches > 2:
        left = {
            text: late
            for text, late in costs.delays.items()
            if ex.Action.parse(text)[1:3] != (row.stage, row.micro_batch)
        }
        return replace(costs, delays=left) if len(left) == len(costs.delays) - 1 else None
    if row.cause == "imbalance" and row.stage < 0:
        return evened(program, costs)
    return None


def evened(program, costs):
    """All stages take their mean, where that can be said in costs: one kind of work a slot and one copy of a stage."""
    whole = program.n_slots == program.n_actions and len(program.placement.routes) == 1
    if not whole or costs.jitter or costs.delays or np.any(costs.time_factor != 1.0):
        return None
    names = ("forward", "backward_input", "backward_weight")
    return replace(costs, **{name: float(np.mean(getattr(costs, name))) for name in names})


def test_causes_of_random_programs_add_up_to_their_idle_time(cases):
    for program, _, trace in cases:
        found = ex.idle_intervals(trace)
        idle = rank_times(trace.events, program.n_ranks).idle
        assert np.abs(found.totals()[0].sum(axis=1) - idle).max() < 1e-9
        assert abs(found.seconds.sum() - idle.sum()) < 1e-9
        same = found.rank[1:] == found.rank[:-1]
        assert (found.start[1:][same] >= found.end[:-1][same]).all()
        # nothing in a simulation is left to the host
        assert found.totals()[0, :, ex.Cause.HOST].sum() < 1e-9


@pytest.mark.parametrize("part", range(4))
def test_what_is_promised_exactly_is_what_a_simulation_without_the_cause_gives(part, cases):
    tried = dict.fromkeys(("latency", "bandwidth", "straggler", "hiccup", "imbalance"), 0)
    for program, costs, trace in cases[part::4]:
        for _, row in ex.gains(trace).iterrows():
            changed = without(program, costs, row)
            if row.promise == "exact" and changed is not None:
                tried[row.cause] += 1
                assert ex.simulate(program, changed).makespan == pytest.approx(row.makespan, abs=1e-9)
                assert trace.makespan - row.gain == pytest.approx(row.makespan, abs=1e-9)
    assert min(tried.values()) > 0, tried  # none of them went untested


def test_no_other_order_of_the_same_work_is_shorter_than_the_bounds():
    rng = np.random.default_rng(5)
    for _ in range(12):
        p, m = int(rng.integers(2, 5)), int(rng.integers(2, 9))
        costs = ex.Costs(forward=rng.uniform(0.5, 2, p), backward=rng.uniform(1, 3, p), latency=rng.uniform(0, 0.4))
        traces = [
            ex.simulate(ex.schedule(name, n_ranks=p, n_micro_batches=m), costs)
            for name in ("naive", "gpipe", "1f1b", "eager_1f1b")
        ]
        shortest = min(trace.makespan for trace in traces)
        for trace in traces:
            bounds = ex.gains(trace).query("promise == 'bound'")
            assert (bounds.makespan <= shortest + 1e-9).all()


def test_an_action_may_be_later_by_its_slack_and_no_more(cases):
    rng = np.random.default_rng(3)
    for program, given, _ in cases[:40]:
        costs = replace(given, delays={})
        trace = ex.simulate(program, costs)
        late = ex.slack(trace)
        row = int(rng.choice(np.flatnonzero(trace.events.stream == 0)))
        assert late[row] >= 0
        event = trace.events.take(np.array([row]))
        place = (int(getattr(event, name)[0]) for name in ("stage", "micro_batch", "segment"))
        action = ex.Action(ex.Kind(int(event.kind[0])), *place)
        for more in (0.0, 0.5):
            moved = ex.simulate(program, replace(costs, delays={str(action): late[row] + more})).makespan
            assert moved == pytest.approx(trace.makespan + more, abs=1e-9)


def test_critical_paths_cover_their_makespan_without_a_gap(cases):
    for _, _, trace in cases[::5]:
        path = ex.critical_path(trace)
        assert path.start.iloc[0] == 0
        assert path.end.iloc[-1] == trace.makespan
        assert (path.start.to_numpy()[1:] == path.end.to_numpy()[:-1]).all()
        assert (path.seconds > 0).all()
        assert set(path.what) <= {"action", "transfer"}
