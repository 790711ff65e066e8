"""The memory that costs say is held, against drawings and what papers count."""

import numpy as np
import pytest

import explorer as ex
from explorer.core import Category


def simulated(name="1f1b", n_ranks=2, n_micro_batches=3, **costs):
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def levels(trace, rank, category):
    time, level = ex.memory_over_time(trace, category=category).of(rank)
    return list(zip(time.tolist(), level.tolist(), strict=True))


def test_between_i_and_w_what_w_needs_is_kept_instead_of_activations():
    # rank 0 of ZB-H1, two ranks, one micro-batch, F = I = W = 1, the last rank's I from 2 to 3
    # rank 0  F0 .  .  I0 W0
    # rank 1  .  F0 I0 W0 .
    trace = simulated("zb_h1", 2, 1, activation_bytes=100, weight_gradient_bytes=30)
    assert levels(trace, 0, Category.ACTIVATIONS) == [(0, 100), (4, 0)]
    assert levels(trace, 0, Category.WEIGHT_GRADIENTS) == [(4, 30), (5, 0)]
    assert levels(trace, 1, Category.WEIGHT_GRADIENTS) == [(3, 30), (4, 0)]


def test_without_a_size_for_it_activations_stay_until_w():
    trace = simulated("zb_h1", 2, 1, activation_bytes=100)
    assert levels(trace, 0, Category.ACTIVATIONS) == [(0, 100), (5, 0)]
    assert levels(trace, 0, Category.WEIGHT_GRADIENTS) == []


def test_what_is_not_cut_keeps_nothing_between():
    trace = simulated(activation_bytes=100, weight_gradient_bytes=30)
    assert levels(trace, 0, Category.WEIGHT_GRADIENTS) == []
    assert ex.peak_bytes(trace).tolist() == [200, 100]


def held(trace):
    """Bytes × seconds over all ranks."""
    return float((trace.memory.delta * (trace.makespan - trace.memory.time)).sum())


@pytest.mark.parametrize("name", ["zb_h1", "zb_h2", "zb_v", "v_half", "dualpipe"])
def test_less_between_i_and_w_is_less_by_as_much_as_w_is_late(name):
    most, less, whole = (
        simulated(name, 4, 8, activation_bytes=100, weight_gradient_bytes=kept) for kept in (100, 40, None)
    )
    assert held(most) == pytest.approx(held(whole))
    events = most.events
    waited = events.end[events.kind == ex.Kind.W].sum() - events.end[events.kind == ex.Kind.I].sum()
    assert held(most) - held(less) == pytest.approx(60 * waited)
    assert (ex.peak_bytes(less) <= ex.peak_bytes(most)).all()


@pytest.mark.parametrize("name", ["1f1b", "zb_h1", "zb_v", "dualpipe", "seq1f1b", "chimera"])
def test_all_that_is_taken_is_given_back_but_what_belongs_to_no_micro_batch(name):
    costs = {"activation_bytes": 100, "weight_gradient_bytes": 40, "message_bytes": 7, "recompute_bytes": 3}
    trace = simulated(name, 4, 8, parameter_bytes=5, optimizer_bytes=10, latency=0.3, **costs)
    memory = trace.memory
    of_batches = memory.micro_batch >= 0
    assert memory.delta[of_batches].sum() == 0
    for category in Category:
        assert ex.memory_over_time(trace, category=category).level.min(initial=0) >= 0
    copies = trace.program.placement.weight_copies.sum()
    assert memory.delta[~of_batches].sum() == copies * (5 + 5 + 10)


def test_the_optimizer_is_held_throughout_a_training_step_only():
    trace = simulated(parameter_bytes=5, optimizer_bytes=[10, 20])
    assert [levels(trace, rank, Category.OPTIMIZER) for rank in (0, 1)] == [[(0, 10)], [(0, 20)]]
    assert levels(simulated("forward_only", parameter_bytes=5, optimizer_bytes=10), 0, Category.OPTIMIZER) == []


def test_a_rank_s_share_of_bytes_is_divided_among_its_stages():
    program = ex.schedule("zb_v", n_ranks=2, n_micro_batches=4)
    share = ex.Costs.per_rank_share(activation_bytes=8, weight_gradient_bytes=4, optimizer_bytes=6)
    costs = share.for_program(program)
    assert (costs.weight_gradient_bytes, costs.optimizer_bytes) == (2, 3)


def test_a_message_lies_in_a_buffer_until_it_is_used():
    # rank 0  F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
    # rank 1  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 .  .
    trace = simulated(activation_bytes=1, message_bytes=9)
    # F1's activation waits from 2 to 4; F0's and F2's are used at once, and F2's waits from 7 to 7
    assert levels(trace, 1, Category.RECEIVE_BUFFERS) == [(1, 0), (2, 9), (4, 0), (7, 0)]
    # each gradient is used by a B of two seconds: B0's from 4 to 6, B1's from 7 to 9, B2's from 10 to 12
    assert levels(trace, 0, Category.RECEIVE_BUFFERS) == [(4, 9), (6, 0), (7, 9), (9, 0), (10, 9), (12, 0)]


def test_buffers_are_the_same_whether_messages_are_actions_or_not():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    placed = ex.add_messages(program)
    costs = ex.Costs(activation_bytes=1, message_bytes=9)
    one, other = (ex.simulate(each, costs) for each in (program, placed))
    buffers = Category.RECEIVE_BUFFERS
    assert np.array_equal(ex.peak_bytes(one, category=buffers), ex.peak_bytes(other, category=buffers))


def test_messages_alone_are_no_known_memory():
    assert len(simulated(message_bytes=9).memory) == 0


def test_weight_gradient_bytes_are_checked_like_other_bytes():
    with pytest.raises(ex.ExplorerError, match="weight_gradient_bytes is 0 or more"):
        ex.Costs(weight_gradient_bytes=-1)
    with pytest.raises(ex.ExplorerError, match="optimizer_bytes is a number, "):
        simulated(parameter_bytes=1, optimizer_bytes=[1, 2, 3])
