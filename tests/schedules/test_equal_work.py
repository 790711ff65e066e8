"""Schedules are compared at equal work: a rank's share, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.schedules import REGISTRY


def busy(trace):
    """(n_ranks,) seconds in which each rank computes."""
    return trace.makespan - trace.idle_per_rank


@pytest.mark.parametrize("name", list(REGISTRY))
def test_every_schedule_does_the_same_work(name):
    program = ex.schedule(name, n_ranks=4, n_micro_batches=16)
    share = ex.Costs.per_rank_share(forward=1.0, backward=2.0)
    trace = ex.simulate(program, share.for_program(program))
    per_micro_batch = 3.0 if REGISTRY[name].trains else 1.0
    np.testing.assert_allclose(busy(trace), 16 * per_micro_batch)
