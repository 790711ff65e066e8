from __future__ import annotations

import itertools

import numpy as np
import pytest

import explorer as ex
from explorer.widgets.columns import pack
from explorer.widgets.curves import both_curves, spread, thin

N_KINDS = len(ex.Kind)


def _read(column):
    return np.frombuffer(column["data"], column["dtype"])


def _unpack(packed, name):
    """As the browser does."""
    column = packed[name]
    if "data" in column:
        return _read(column)
    at, value = _read(column["at"]), _read(column["value"])
    whole = np.repeat(value, np.diff(at, append=packed["n"]))
    offset = _read(packed["offset"])
    for begin, end in itertools.pairwise(offset) if column.get("sums") else ():
        whole[begin:end] = np.cumsum(whole[begin:end], dtype=whole.dtype)
    return whole / column["per_ms"] if "per_ms" in column else whole


def test_pack_finds_each_rank_and_kind_by_offset():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    packed = pack(ex.simulate(program).events, 2)
    offset, start, micro_batch = (_unpack(packed, name) for name in ("offset", "start", "micro_batch"))
    backwards = slice(offset[N_KINDS + ex.Kind.B], offset[N_KINDS + ex.Kind.B + 1])
    # rank 1: F0 at 1, B0 from 2 to 4, F1 at 4, B1 from 5: in milliseconds
    assert start[backwards].tolist() == [2000.0, 5000.0]
    assert micro_batch[backwards].tolist() == [0, 1]
    assert packed["n"] == 8


def test_pack_sorts_events_in_any_order():
    events = ex.simulate(ex.schedule("gpipe", n_ranks=4, n_micro_batches=8)).events
    shuffled = events.take(np.random.default_rng(0).permutation(len(events)))
    assert _unpack(pack(shuffled, 4), "start").tolist() == _unpack(pack(events, 4), "start").tolist()


@pytest.mark.parametrize("jitter", [0.0, 0.1])
@pytest.mark.parametrize("name", ["1f1b", "interleaved_1f1b", "zb_v"])
def test_what_is_packed_in_short_is_what_it_was(name, jitter):
    program = ex.schedule(name, n_ranks=4, n_micro_batches=16)
    forward = [1.0, 1.5, 0.5, 1.0, 2.0, 1.0, 1.0, 1.0][: program.n_stages]
    events = ex.simulate(program, ex.Costs(forward=forward, latency=0.1, jitter=jitter)).events
    packed = pack(events, 4)
    order = np.lexsort((events.start, events.kind, events.rank))
    for column in ("duration", "wait", "stage", "micro_batch", "origin"):
        expected = {"duration": (events.end - events.start) * 1e3, "wait": events.wait * 1e3}.get(column)
        if expected is None:
            expected = getattr(events, column)
        unpacked = _unpack(packed, column)
        assert unpacked.tolist() == expected[order].astype(unpacked.dtype).tolist()


@pytest.mark.parametrize("latency", [0.0, 1e-3, 1e-7])
@pytest.mark.parametrize("size", [(2, 2), (8, 32), (64, 512)])
def test_starts_are_off_by_less_than_could_be_seen(size, latency):
    n_ranks, n_micro_batches = size
    program = ex.schedule("1f1b", n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    trace = ex.simulate(program, ex.Costs(forward=0.01, backward=0.02, latency=latency))
    events, packed = trace.events, pack(trace.events, n_ranks)
    order = np.lexsort((events.start, events.kind, events.rank))
    off = np.abs(_unpack(packed, "start") / 1e3 - events.start[order])
    in_runs = "at" in packed["start"]
    assert in_runs or n_ranks == 2  # of few nothing repeats itself
    assert off.max() <= trace.makespan * (1e-11 if in_runs else 2**-23)


def test_what_begins_together_begins_together_in_short():
    program = ex.schedule("dualpipev", n_ranks=4, n_micro_batches=16)
    events = ex.simulate(program, ex.Costs(forward=0.1, backward_input=0.2, backward_weight=0.1)).events
    order = np.lexsort((events.start, events.kind, events.rank))
    moments, which = np.unique(events.start[order], return_inverse=True)
    unpacked = _unpack(pack(events, 4), "start")
    assert len(moments) < len(unpacked) / 2
    assert len(set(zip(which.tolist(), unpacked.tolist(), strict=True))) == len(moments)


def _n_bytes(packed):
    columns = [column for column in packed.values() if isinstance(column, dict)]
    parts = [[column] if "data" in column else [column["at"], column["value"]] for column in columns]
    return sum(part["data"].nbytes for both in parts for part in both)


def test_equal_operations_take_few_bytes():
    events = ex.simulate(ex.schedule("1f1b", n_ranks=64, n_micro_batches=512)).events
    assert _n_bytes(pack(events, 64)) < len(events) / 4


def test_unequal_operations_take_no_more_than_their_columns():
    events = ex.simulate(ex.schedule("1f1b", n_ranks=8, n_micro_batches=64), ex.Costs(jitter=0.1)).events
    assert _n_bytes(pack(events, 8)) < (3 * 4 + 2 * 2 + 1) * len(events)


def test_thin_keeps_the_peak():
    level = np.zeros(10_000)
    level[7_321] = 5.0
    time, thinned = thin(np.arange(10_000.0), level)
    assert len(time) == len(thinned) <= 600
    assert thinned.max() == 5.0


def test_spread_reaches_from_the_first_rank_to_the_last():
    assert spread(4) == [0, 1, 2, 3]
    assert (spread(64)[0], spread(64)[-1], len(spread(64))) == (0, 63, 8)


def test_a_line_stays_where_as_much_is_given_back_as_taken_in_one_moment():
    # rank 0 of two holds F0, then F0 and F1, then takes up one where it lets go of one, until the last two B, 3 s apart
    trace = ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=64), ex.Costs(forward=1.0, backward=2.0))
    (time, level), _ = both_curves(trace, None)[0].lines
    ms = 1e3
    assert time.tolist() == [0.0, 0.0, 1 * ms, (trace.makespan - 3) * ms, trace.makespan * ms, trace.makespan * ms]
    assert level.tolist() == [0.0, 1.0, 2.0, 1.0, 0.0, 0.0]
