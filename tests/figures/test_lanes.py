"""Which bars share a lane."""

import numpy as np
import pytest

import explorer as ex
from explorer.core import Kind
from explorer.core.events import Stream
from explorer.figures.lanes import shared_lanes


def parts(**columns):
    """(parts, above) of each event of these columns."""
    share = shared_lanes(ex.Events.of(**columns))
    return list(zip(share.parts.tolist(), share.above.tolist(), strict=True))


ALONE = (1, 0)


def test_kinds_that_begin_together_on_a_rank_lie_in_the_order_of_their_codes():
    # rank 0: B with F, later F alone; rank 1: F at the same time as those on rank 0
    assert parts(
        rank=(0, 0, 0, 1), kind=(Kind.B, Kind.F, Kind.F, Kind.F), start=(1.0, 1.0, 4.0, 1.0), end=(3.0, 2.0, 5.0, 2.0)
    ) == [(2, 1), (2, 0), ALONE, ALONE]


def test_three_that_begin_together_have_a_third_each():
    assert parts(kind=(Kind.W, Kind.F, Kind.B), start=0.0, end=1.0) == [(3, 2), (3, 0), (3, 1)]


def test_messages_and_what_takes_no_time_and_one_kind_twice_take_no_room():
    kinds = (Kind.F, Kind.SEND_F, Kind.B, Kind.F)
    streams = (Stream.COMPUTE, Stream.SEND, Stream.COMPUTE, Stream.COMPUTE)
    assert parts(kind=kinds, stream=streams, start=0.0, end=(1.0, 1.0, 0.0, 1.0)) == [ALONE] * 4


def test_no_events_have_no_share():
    assert parts(step=()) == []


@pytest.mark.parametrize("name", ["dualpipe", "dualpipev"])
def test_every_slot_of_an_f_with_a_b_is_shared_and_nothing_else(name):
    trace = ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=12), ex.Costs(latency=0.1))
    share, events = shared_lanes(trace.events), trace.events
    computes = events.stream == Stream.COMPUTE
    place = events.rank[computes] * 1000 + events.slot[computes]
    _, of, n = np.unique(place, return_inverse=True, return_counts=True)
    assert share.parts[computes].tolist() == n[of].tolist()
    assert share.above[computes].tolist() == ((n[of] == 2) & (events.kind[computes] != Kind.F)).astype(int).tolist()
    assert (share.parts[~computes] == 1).all()
