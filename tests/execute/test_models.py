"""The ready models learn, fit any number of stages, and are the same every time."""

from __future__ import annotations

import pytest
import torch

import explorer as ex


@pytest.mark.parametrize("name", ["mlp", "conv", "gpt"])
def test_a_ready_model_learns_and_equals_the_unpipelined_one(name):
    ready = ex.ready_model(name, n_stages=2, n_micro_batches=2)
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    run = ex.execute(program, ready.layers, ready.batch, loss=ready.loss, optimizer=ready.optimizer, n_steps=3)
    assert run.parity
    assert run.losses[0] > run.losses[1] > run.losses[2]
    assert "whole batch at once" in run.reference  # no batch statistics, no dropout


@pytest.mark.parametrize("name", ["mlp", "conv", "gpt"])
@pytest.mark.parametrize(("n_stages", "n_micro_batches"), [(1, 3), (16, 5)])
def test_a_ready_model_has_a_layer_a_stage_and_equal_micro_batches(name, n_stages, n_micro_batches):
    ready = ex.ready_model(name, n_stages=n_stages, n_micro_batches=n_micro_batches)
    one = ex.ready_model(name, n_stages=n_stages, n_micro_batches=1)
    assert len(ready.layers) == n_stages
    assert len(ready.batch[0]) == len(ready.batch[1]) == n_micro_batches * len(one.batch[0])


@pytest.mark.parametrize("name", ["mlp", "conv", "gpt"])
def test_a_ready_model_is_the_same_every_time_and_draws_no_number_of_the_callers(name):
    before = torch.get_rng_state()
    one, other = (ex.ready_model(name, n_stages=2, n_micro_batches=2) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.batch[0], other.batch[0])
    for a, b in zip(one.layers, other.layers, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_the_text_is_pythons_own_source():
    from explorer.execute.models.text import read_text

    assert read_text(400).startswith('"""Text wrapping and filling.')
    assert len(read_text(3_000_000)) == 3_000_000


@pytest.mark.parametrize("name", ["mlp", "conv", "gpt"])
def test_the_largest_has_at_most_about_fifty_million_parameters(name):
    ready = ex.ready_model(name, n_stages=8, n_micro_batches=1, size="large")
    assert 10e6 < ready.n_parameters < 55e6


def test_rank_0_of_a_gpt_holds_four_micro_batches_under_1f1b():
    ready = ex.ready_model("gpt", n_stages=4, n_micro_batches=8)
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    run = ex.execute(program, ready.layers, ready.batch, loss=ready.loss)
    one_of_each = run.trace.costs.activation_bytes
    assert run.peak_activation_bytes == pytest.approx(one_of_each * [4, 3, 2, 1], rel=0.01)
