"""Traces: their measures, on events written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.core import Kind, MemoryChanges, Stream
from explorer.errors import InputError

PROGRAM = ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)


def trace(*rows: tuple[int, int, str, float, float], stream: int = Stream.COMPUTE) -> ex.Trace:
    """A trace of (step, rank, kind, start, end)."""
    step, rank, kind, start, end = zip(*rows, strict=True)
    kinds = [Kind[k] for k in kind]
    events = ex.Events.of(
        step=step, rank=rank, stage=rank, micro_batch=0, kind=kinds, start=start, end=end, stream=stream
    )
    return ex.Trace(events, PROGRAM)


def test_busy_time_is_a_union_and_the_optimizer_counts_for_nothing() -> None:
    # rank 0 works 0–2 and 3–4 (two actions overlap), rank 1 1–4; U runs on to 9
    own = trace((0, 0, "F", 0, 2), (0, 0, "F", 1, 1.5), (0, 0, "B", 3, 4), (0, 1, "F", 1, 4), (0, 0, "U", 4, 9))
    assert own.makespan == 4.0
    assert own.idle_per_rank.tolist() == [1.0, 1.0]
    assert own.bubble_ratio == 0.25
    assert own.bubble_overhead == pytest.approx(2 / 6)
    assert own.span_per_rank.tolist() == [4.0, 3.0]


def test_order_of_rows_does_not_matter() -> None:
    rows = [(0, 1, "B", 5, 6), (0, 0, "F", 0, 1), (0, 1, "F", 2, 4), (0, 0, "B", 6, 9)]
    assert trace(*rows).summary() == trace(*sorted(rows, key=lambda r: (r[1], r[3]))).summary()


def test_several_steps_give_the_median_without_the_first() -> None:
    # torch's first step is always slow: 120 ms, then 33 three times, is 33 and not the mean 54.75
    rows = [(s, r, "F", 1000.0 * s, 1000.0 * s + d) for s, d in enumerate((120.0, 33.0, 34.0, 33.0)) for r in (0, 1)]
    own = trace(*rows)
    assert own.steps == [0, 1, 2, 3]
    assert own.makespan == 33.0
    assert own.step(0).makespan == 120.0
    assert own.bubble_ratio == 0.0


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (9, "a step is one that the trace holds; got 9; the steps there are: 0, 1, 2, 3, 4, 5, 6, 7 … 8"),
        (-1, "got -1; the steps there are: 0"),
        (True, "got True; the steps"),
        ("1", "got 1; the steps"),
    ],
)
def test_a_step_that_is_not_there_is_refused_with_those_there_are(number: object, message: str) -> None:
    own = trace(*((step, rank, "F", 0.0, 1.0) for step in range(9) for rank in (0, 1)))
    with pytest.raises(InputError, match=message):
        own.step(number)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got 0; the steps there are: none"):
        ex.Trace(ex.Events.of(step=()), PROGRAM).step(0)


def test_in_flight_frees_before_it_takes_and_waits_for_w() -> None:
    full = trace((0, 0, "F", 0, 1), (0, 0, "B", 1, 2), (0, 0, "F", 2, 3), (0, 0, "B", 3, 4))
    assert full.peak_in_flight.tolist() == [1, 0]
    split = trace((0, 0, "F", 0, 1), (0, 0, "I", 1, 2), (0, 0, "F", 2, 3), (0, 0, "W", 3, 4), (0, 0, "W", 5, 6))
    assert split.peak_in_flight.tolist() == [2, 0]


def test_an_empty_trace_measures_nothing() -> None:
    empty = ex.Trace(ex.Events.of(step=()), PROGRAM)
    assert empty.summary() == {
        "makespan": 0.0,
        "bubble_ratio": 0.0,
        "bubble_overhead": 0.0,
        "idle_per_rank": [0.0, 0.0],
        "peak_in_flight": [0, 0],
    }


def test_messages_are_no_work() -> None:
    assert trace((0, 0, "F", 0, 1), stream=Stream.SEND).makespan == 0.0


def test_to_frame_spells_codes_out() -> None:
    frame = ex.simulate(PROGRAM, ex.Costs(latency=1)).to_frame()
    assert list(frame.columns) == list(ex.Events.DTYPES)
    assert frame.kind.tolist() == ["F", "B", "F", "B", "SEND_F", "SEND_B"]
    assert set(frame.origin) == {"simulated"}
    assert set(frame.stream) == {"compute", "send"}


def test_tables_refuse_columns_they_do_not_have() -> None:
    with pytest.raises(TypeError, match="Events has no column 'colour'"):
        ex.Events.of(step=[0], colour=[1])


def test_columns_keep_their_dtypes() -> None:
    events = ex.simulate(PROGRAM).events
    assert {name: str(column.dtype) for name, column in events.columns().items()} == ex.Events.DTYPES
    assert all(column.flags["C_CONTIGUOUS"] for column in events.columns().values())
    assert np.concatenate([events.take(slice(0, 1)).rank, events.take(slice(1, None)).rank]).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["start", "end", "wait"])
def test_times_that_no_clock_shows_are_refused_with_their_row(column: str, value: float) -> None:
    times = {name: [0.0, 1.0, 2.0] for name in ("start", "end", "wait")}
    times[column][1] = value
    events = ex.Events.of(rank=[0, 1, 1], kind=Kind.F, stage=0, micro_batch=0, **times)
    message = (
        f"times of a trace are finite seconds; got {value} as {column} in row 1 of its events; leave such rows out"
    )
    with pytest.raises(InputError, match=message) as caught:
        ex.Trace(events, PROGRAM)
    assert caught.value.argument == "events"


def test_a_change_of_memory_at_no_time_is_refused_with_its_row() -> None:
    changes = MemoryChanges.of(time=[0.0, np.nan], rank=0, category=0, delta=1)
    with pytest.raises(InputError, match="got nan as time in row 1 of its memory"):
        ex.Trace(ex.Events.of(step=()), PROGRAM, changes)


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_the_program_has_not_is_refused_with_its_row(rank: int) -> None:
    events = ex.Events.of(rank=[0, rank], kind=Kind.F, stage=0, micro_batch=0, start=0.0, end=1.0)
    with pytest.raises(
        InputError, match=f"ranks of a trace are its program's, from 0 to 1; got {rank} in row 1 of its"
    ):
        ex.Trace(events, PROGRAM)


def test_other_values_than_tables_are_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"a trace's events are of Events; got Program; make them with explorer.Events"
    ):
        ex.Trace(PROGRAM, PROGRAM)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a trace's program .* got str; make"):
        ex.Trace(ex.Events.of(step=()), "1f1b")  # type: ignore[arg-type]
