"""Programs of any origin in processes: equal to the unpipelined model. The registry's are in test_family.py."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

import explorer as ex
from explorer.core import Kind, Stream
from explorer.execute.keeper import prepare
from tests.execute import family

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked")]


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(3)


def train(program, n_steps):
    return family.execute(program, "processes", *family.layers_and_batch(program), n_steps=n_steps)


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
