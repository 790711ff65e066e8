"""Every schedule of the registry in processes: equal to the unpipelined model, or refused in one sentence."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Kind, Stream
from explorer.errors import ProgramError, ScheduleError
from explorer.execute.keeper import prepare
from explorer.schedules import REGISTRY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked")]

WIDTH = 8
REFUSED = {
    "dualpipe": "needs one weight copy a stage; dualpipe has 2",
    "chimera": "needs one weight copy a stage; chimera has 2",
    "pipedream": "keeps one version of the weights and updates them after the step; pipedream keeps up to 3",
    "pipedream_2bw": "keeps one version of the weights and updates them after the step; pipedream_2bw keeps up to 2",
    "seq1f1b": "passes whole sequences from stage to stage; seq1f1b cuts them into",
}
TRAINS = [name for name in REGISTRY if name not in {*REFUSED, "forward_only"}]


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(4)


def squared(outputs, targets):
    return (outputs - targets).square().mean()


def of(name, n_ranks):
    """The schedule with the fewest micro-batches, from 2·P + 2 on, that it exists for."""
    options = (
        {"memory_limit": 1e9, "costs": ex.Costs(forward=1, backward=2)}
        if "memory_limit" in REGISTRY[name].options
        else {}
    )
    for n_micro_batches in range(2 * n_ranks + 2, 17):
        try:
            return ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, **options)
        except ScheduleError:
            continue
    raise AssertionError(name)


def train(program, n_steps=3):
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(program.n_stages)]
    batch = torch.randn(2, 2 * program.n_micro_batches, WIDTH).unbind()
    return ex.execute(
        program,
        layers,
        batch,
        loss=squared,
        optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        n_steps=n_steps,
        backend="processes",
    )


@pytest.mark.parametrize("name", TRAINS)
def test_three_steps_equal_those_of_the_unpipelined_model(name):
    program = of(name, 2 + TRAINS.index(name) % 3)
    run = train(program)
    assert run.parity, run.parity_worst
    assert len(run.losses) == 3
    assert run.gradients.keys() == {
        f"{stage}.0.{part}" for stage in range(program.n_stages) for part in ("weight", "bias")
    }
    compute = run.trace.events.take((run.trace.events.stream == Stream.COMPUTE) & (run.trace.events.kind != Kind.U))
    assert len(compute) == 3 * program.n_actions


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_rank_with_one_copy_of_todays_weights_cannot_do_is_refused(name):
    with pytest.raises(ProgramError, match=REFUSED[name]):
        train(of(name, 3 if name == "pipedream" else 4))


def test_every_schedule_is_in_one_of_the_lists():
    assert {*TRAINS, *REFUSED, "forward_only"} == REGISTRY.keys()


@pytest.mark.parametrize("seed", range(5))
def test_any_order_in_which_nothing_waits_in_a_circle_runs_and_is_right(seed):
    assert train(at_random(seed), n_steps=2).parity


def at_random(seed):
    """Stages anywhere, some backwards cut in two, and every action at any time after what it needs."""
    dice = random.Random(seed)
    n_ranks, n_stages, n_micro_batches = dice.randint(2, 3), dice.randint(3, 6), dice.randint(3, 6)
    rank_of = [*range(n_ranks), *(dice.randrange(n_ranks) for _ in range(n_stages - n_ranks))]
    dice.shuffle(rank_of)
    split = [dice.random() < 0.5 for _ in range(n_stages)]
    needs = {}
    for m in range(n_micro_batches):
        for s in range(n_stages):
            needs[f"{s}F{m}"] = [f"{s - 1}F{m}"] if s else []
            later = [f"{s + 1}{'I' if split[s + 1] else 'B'}{m}"] if s < n_stages - 1 else []
            needs[f"{s}{'I' if split[s] else 'B'}{m}"] = [f"{s}F{m}", *later]
            if split[s]:
                needs[f"{s}W{m}"] = [f"{s}I{m}"]
    orders, done = [[] for _ in range(n_ranks)], set()
    while len(done) < len(needs):
        action = dice.choice([one for one in needs if one not in done and done.issuperset(needs[one])])
        done.add(action)
        orders[rank_of[int(action[0])]].append(action)
    return ex.Program.from_orders(
        f"random {seed}", ex.Placement(n_ranks, np.array([rank_of], np.int32)), n_micro_batches, orders
    )


def test_orders_from_a_drawing_a_file_and_a_function_run_like_any_other(tmp_path):
    drawn = ex.from_grid("""
        F0 F1 .  .  B0 B1
        .  F1 F0 B0 B1 .
    """)
    ex.save(ex.schedule("zb_h1", n_ranks=2, n_micro_batches=4), tmp_path / "order.csv")
    for program in (drawn, ex.load(tmp_path / "order.csv")):
        assert train(program, n_steps=2).parity


def test_actions_begun_together_run_one_after_the_other_and_lie_so_in_the_trace():
    program = ex.schedule("dualpipev", n_ranks=2, n_micro_batches=6)
    overlaps = np.flatnonzero(np.diff(program.slot_offsets) > 1)
    assert len(overlaps)
    run = train(program, n_steps=1)
    assert run.parity
    events = run.trace.events
    compute = events.take((events.stream == Stream.COMPUTE) & (events.kind != Kind.U))
    for rank in range(2):
        mine = compute.take(compute.rank == rank)
        order = np.argsort(mine.start)
        assert (mine.start[order][1:] >= mine.end[order][:-1]).all()
    assert any("overlap" in note for note in run.notes)
