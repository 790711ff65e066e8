import numpy as np
import pytest

import explorer as ex
from explorer.core import graph_of
from explorer.execute.typical import Lags, lags, refit, typical
from explorer.simulate import slot_times

HOST, MESSAGE = 0.125, 0.5  # seconds, exact in binary


def late_by(program, host=HOST, message=MESSAGE):
    """When slots of 1 s run, each beginning `host` after its rank is free and, over a link, `message` after that."""
    graph = graph_of(program)
    edges = ex.Costs(latency=message).edge_seconds(graph)
    start, end = slot_times(graph, np.full(program.n_slots, 1 + host), edges)
    return graph, start, end - host


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb_h1"])
def test_lags_are_what_host_and_messages_take(name):
    graph, start, end = late_by(ex.schedule(name, n_ranks=4, n_micro_batches=8))
    found = lags(graph, start, end)
    assert len(found.host) > 10
    assert len(found.message) > 5
    assert np.allclose(found.host, HOST)
    assert np.allclose(found.message, HOST + MESSAGE)


def test_lags_leave_out_what_has_not_run():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    graph, start, end = late_by(program)
    whole = lags(graph, start, end)
    start[5:] = end[5:] = np.nan
    found = lags(graph, start, end)
    assert 0 < len(found.host) < len(whole.host)
    assert np.allclose(found.host, HOST)


def test_lags_leave_out_slots_of_several_actions_as_senders():
    program = ex.schedule("dualpipev", n_ranks=2, n_micro_batches=6)
    graph, start, end = late_by(program)
    assert np.diff(program.slot_offsets).max() == 2
    assert (lags(graph, start, end).message > 0).all()


def test_typical_is_a_mean_that_no_single_hiccup_moves():
    assert typical([]) == 0
    assert typical([3.0]) == 3
    assert typical([1.0, 2.0, 6.0]) == 3  # of few none is left out
    assert typical([1.0] * 15 + [2.0] * 5 + [1000.0]) == (13 * 1.0 + 4 * 2.0) / 17  # 2 of 21 at either end


def test_refit_expects_what_laid_steps_took():
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
    graph, start, end = late_by(program)
    costs = refit(ex.Costs(), program, (end - start)[None], lags(graph, start, end))
    assert costs.fixed == pytest.approx(HOST)
    assert costs.latency == pytest.approx(MESSAGE)
    # one lag fewer: behind the last operation there is none
    assert ex.simulate(program, costs).makespan - costs.fixed == pytest.approx(end.max() - start.min())


def test_refit_keeps_the_links_of_a_virtual_clock():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    none = Lags(np.zeros(0), np.zeros(0))
    costs = refit(ex.Costs(latency=0.25), program, np.ones((1, program.n_slots)), none)
    assert (costs.latency, costs.fixed) == (0.25, 0)
