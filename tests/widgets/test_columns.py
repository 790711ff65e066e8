from __future__ import annotations

import numpy as np

import explorer as ex
from explorer.widgets.columns import pack
from explorer.widgets.curves import spread, thin

N_KINDS = len(ex.Kind)


def _read(column):
    return np.frombuffer(column["data"], column["dtype"])


def test_pack_finds_each_rank_and_kind_by_offset():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    packed = pack(ex.simulate(program).events, 2)
    offset, start, micro_batch = (_read(packed[name]) for name in ("offset", "start", "micro_batch"))
    backwards = slice(offset[N_KINDS + ex.Kind.B], offset[N_KINDS + ex.Kind.B + 1])
    # rank 1: F0 at 1, B0 from 2 to 4, F1 at 4, B1 from 5: in milliseconds
    assert start[backwards].tolist() == [2000.0, 5000.0]
    assert micro_batch[backwards].tolist() == [0, 1]
    assert packed["n"] == 8


def test_pack_sorts_events_in_any_order():
    events = ex.simulate(ex.schedule("gpipe", n_ranks=4, n_micro_batches=8)).events
    shuffled = events.take(np.random.default_rng(0).permutation(len(events)))
    assert bytes(pack(shuffled, 4)["start"]["data"]) == bytes(pack(events, 4)["start"]["data"])


def test_thin_keeps_the_peak():
    level = np.zeros(10_000)
    level[7_321] = 5.0
    time, thinned = thin(np.arange(10_000.0), level)
    assert len(time) == len(thinned) <= 600
    assert thinned.max() == 5.0


def test_spread_reaches_from_the_first_rank_to_the_last():
    assert spread(4) == [0, 1, 2, 3]
    assert (spread(64)[0], spread(64)[-1], len(spread(64))) == (0, 63, 8)
