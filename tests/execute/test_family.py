"""Every schedule of the registry, in both backends: as right as plain training, or refused in one sentence.

Here at a sample of sizes; `pytest -m benchmark tests/benchmarks/test_every_size.py` tries every size there is.
"""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import ProgramError
from explorer.execute.keeper import prepare
from explorer.schedules import REGISTRY
from tests.execute.family import (
    BACKENDS,
    RANKS,
    REFUSED,
    TRAINS,
    Apart,
    Size,
    apart,
    execute,
    layers_and_batch,
    sample,
    sizes,
)

OPTIONS = {
    "1f1b with no forwards first": ("1f1b", Size(3, 1, 5), {"warm_up": 0}),
    "1f1b with more forwards on the first rank": ("1f1b", Size(4, 1, 7), {"warm_up": [6, 3, 3, 0]}),
    "1f1b of torch": ("1f1b", Size(4, 1, 4), {"dialect": "torch"}),
    "1f1b of DeepSpeed": ("1f1b", Size(4, 1, 7), {"dialect": "deepspeed"}),
    "eager 1f1b with three each": ("eager_1f1b", Size(4, 1, 11), {"warm_up": 3}),
    "interleaved, larger groups, the last one smaller": ("interleaved_1f1b", Size(3, 2, 11), {"group_size": 4}),
    "interleaved of torch, in one round": ("interleaved_1f1b", Size(4, 2, 7), {"dialect": "torch"}),
    "interleaved of torch, one chunk": ("interleaved_1f1b", Size(3, 1, 6), {"dialect": "torch"}),
    "gis in its largest groups": ("gis", Size(4, 2, 9), {"group_size": 4}),
    "zb_v of torch": ("zb_v", Size(3, 2, 7), {"dialect": "torch"}),
    "zb_1p for uneven costs": ("zb_1p", Size(4, 1, 9), {"costs": ex.Costs(forward=[1, 3, 2, 1], backward=4)}),
    "zb_2p with weights that free nothing": ("zb_2p", Size(3, 1, 10), {"weight_share": 0.0}),
    "seq1f1b with sequences in one piece": ("seq1f1b", Size(3, 1, 7), {"n_segments": 1}),
}


@pytest.fixture(scope="module")
def warm():
    """Processes for as many ranks as there are at most."""
    if not sys.platform.startswith("linux"):
        pytest.skip("processes are forked")
    prepare(max(RANKS))


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "processes":
        request.getfixturevalue("warm")
    return request.param


def wrong(found: dict[Size, Apart]) -> dict[Size, Apart]:
    return {size: differences for size, differences in found.items() if not differences.is_rounding}


@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", RANKS)
@pytest.mark.parametrize("name", TRAINS)
def test_three_steps_equal_plain_training(name, n_ranks, backend):
    found = {size: apart(program, backend) for size, program in sample(name, n_ranks, backend)}
    assert found
    assert wrong(found) == {}


@pytest.mark.slow
@pytest.mark.parametrize("what", OPTIONS)
def test_an_order_that_an_option_makes_is_as_right(what, backend):
    name, size, options = OPTIONS[what]
    assert wrong({size: apart(ex.schedule(name, **size._asdict(), **options), backend)}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", RANKS)
def test_forwards_alone_give_what_the_model_in_one_piece_gives(n_ranks, backend):
    for _, program in sizes("forward_only", n_ranks)[::5]:
        layers, (inputs, _) = layers_and_batch(program)
        run = ex.execute(program, layers, inputs, backend=backend)
        with torch.no_grad():
            torch.testing.assert_close(run.outputs, nn.Sequential(*layers)(inputs))
        assert run.parity
        assert run.gradients == {}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_rank_with_one_copy_of_todays_weights_cannot_do_is_refused_at_every_size(name, backend):
    found = [program for n_ranks in RANKS for _, program in sizes(name, n_ranks)]
    assert len(found) >= 12
    for program in found:
        with pytest.raises(ProgramError, match=REFUSED[name]):
            execute(program, backend, *layers_and_batch(program))


def test_every_schedule_is_in_one_of_the_lists():
    assert {*TRAINS, *REFUSED, "forward_only"} == REGISTRY.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINS)
def test_the_sample_takes_few_many_and_odd_numbers_of_micro_batches_at_every_number_of_ranks(name):
    for n_ranks in RANKS:
        every = {size for size, _ in sizes(name, n_ranks)}
        taken = {size for backend in BACKENDS for size, _ in sample(name, n_ranks, backend)}
        assert taken <= every
        for n_chunks in {size.n_chunks for size in every}:
            here, there = ({s.n_micro_batches for s in which if s.n_chunks == n_chunks} for which in (taken, every))
            assert {min(there), max(there)} <= here
            assert any(n % 2 for n in here) == any(n % 2 for n in there)
