"""Traces in files: each form of ours gives back an equal trace, others are refused in a sentence."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import explorer as ex
from explorer.core.clocks import ClockOffset
from explorer.errors import ExplorerError, InputError

FORMS = ("run.json", "run.json.gz", "run.csv", "run.csv.gz")


def same_columns(one, other) -> None:
    for name, column in one.columns().items():
        found = other.columns()[name]
        assert found.dtype == column.dtype, name
        assert found.tolist() == column.tolist(), name


def same(one: ex.Trace, other: ex.Trace) -> None:
    same_columns(one.events, other.events)
    same_columns(one.memory, other.memory)
    assert (one.clock, one.version, one.clock_offsets) == (other.clock, other.version, other.clock_offsets)
    assert one.messages == other.messages
    for field in dataclasses.fields(ex.Program):
        left, right = getattr(one.program, field.name), getattr(other.program, field.name)
        if field.name == "placement":
            assert left.routes.tolist() == right.routes.tolist()
            assert (left.route_of is None) == (right.route_of is None)
            assert left.n_ranks == right.n_ranks
        elif isinstance(left, tuple):
            assert [column.tolist() for column in left] == [column.tolist() for column in right]
        else:
            assert np.array_equal(left, right), field.name
    assert (one.costs is None) == (other.costs is None)
    for field in dataclasses.fields(ex.Costs) if one.costs else ():
        left, right = getattr(one.costs, field.name), getattr(other.costs, field.name)
        assert left == right if isinstance(left, dict) else np.array_equal(left, right), field.name


def simulated(name: str = "zb_v", **costs) -> ex.Trace:
    amounts = {"latency": 0.1, "activation_bytes": 3, "parameter_bytes": 7, "message_bytes": 5, **costs}
    return ex.simulate(ex.schedule(name, n_ranks=2, n_micro_batches=4), ex.Costs(**amounts))


@pytest.fixture(params=FORMS)
def file(request, tmp_path) -> Path:
    return tmp_path / request.param


@pytest.mark.parametrize("name", ["1f1b", "zb_v", "dualpipe", "seq1f1b", "pipedream_2bw", "forward_only"])
def test_a_trace_comes_back_equal(file, name):
    trace = simulated(name)
    ex.save(trace, file)
    same(ex.load(file), trace)


def test_costs_of_every_shape_and_infinite_ones_come_back(file):
    bandwidth = np.array([[np.inf, 10.0], [20.0, np.inf]])
    trace = simulated(forward=[1.0, 1.5, 1.0, 0.1], bandwidth=bandwidth, delays={"1F2": 0.5}, jitter=0.1, seed=3)
    ex.save(trace, file)
    same(ex.load(file), trace)


def test_steps_origins_offsets_and_an_unusual_clock_come_back(file):
    trace = simulated()
    events = dataclasses.replace(
        trace.events,
        step=np.arange(len(trace.events), dtype=np.int32) % 3,
        origin=(np.arange(len(trace.events)) % len(ex.Origin)).astype(np.int8),
        start=trace.events.start / 3 + 1e9,  # digits that a rounded text would lose
        end=trace.events.end / 3 + 1e9,
    )
    offsets = (ClockOffset(0.0, 0.0, 0.0), ClockOffset(1.25, 1.0, 1.5))
    changed = dataclasses.replace(trace, events=events, costs=None, clock="real – ü", clock_offsets=offsets)
    ex.save(changed, file)
    same(ex.load(file), changed)


def test_a_program_with_waits_capacities_and_without_events_comes_back(file):
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2).with_waits(("1F0", "0F1", 0.5))
    program = dataclasses.replace(program, capacities=np.array([1]), weight_versions=np.array([2, 1]))
    trace = ex.Trace(ex.Events.of(step=()), program)
    ex.save(trace, file)
    same(ex.load(file), trace)


@pytest.mark.parametrize("rule", ["buffered", "ordered"])
def test_the_rule_of_its_messages_comes_back(file, rule):
    program = ex.add_messages(ex.schedule("gpipe", n_ranks=2, n_micro_batches=4))
    trace = ex.simulate(program, ex.Costs(latency=0.5), messages=rule)
    assert trace.messages == trace.step(0).messages == rule
    ex.save(trace, file)
    same(ex.load(file), trace)


def test_what_is_loaded_goes_on_like_any_other(file):
    trace = simulated()
    ex.save(trace, file)
    loaded = ex.load(file)
    assert loaded.summary() == trace.summary()
    assert ex.timeline(loaded).data


def test_pandas_reads_the_table(tmp_path):
    trace = simulated()
    ex.save(trace, tmp_path / "run.csv")
    frame = pd.read_csv(tmp_path / "run.csv", comment="#")
    pd.testing.assert_frame_equal(frame, trace.to_frame(), check_dtype=False, check_categorical=False)


# ── what Perfetto shows ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shown(tmp_path):
    """The events in the order drawn here, F 1 s and B 2 s, messages 0.1 s:

    rank 0  F0 F1    …   B0 B1
    rank 1     F0 B0 F1 B1
    """
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    ex.save(ex.simulate(program, ex.Costs(latency=0.1, activation_bytes=3)), tmp_path / "run.json")
    return json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_each_rank_is_a_process_and_each_stream_a_thread(shown):
    titles = {(e["pid"], e["tid"], e["args"]["name"]) for e in shown if e["ph"] == "M" and "name" in e["args"]}
    assert {(0, 0, "rank 0"), (1, 0, "rank 1"), (0, 0, "compute"), (1, 1000, "send")} <= titles


def test_slices_are_named_as_actions_in_microseconds(shown):
    slices = {(e["pid"], e["name"]): (e["ts"], e["dur"]) for e in shown if e["ph"] == "X"}
    assert slices[1, "1F0"] == (1.1e6, 1e6)  # behind rank 0's, and the message
    assert slices[1, "1B0"] == (2.1e6, 2e6)


def test_arrows_go_from_an_action_to_what_waits_for_it(shown):
    starts, ends = ({e["id"]: (e["pid"], e["ts"]) for e in shown if e["ph"] == phase} for phase in "sf")
    arrows = {(*starts[number], *ends[number]) for number in starts}
    # F0 and F1 of rank 0 begin at 0 and 1 s; rank 1 runs F0 B0 F1 B1 from 1.1, 2.1, 4.1 and 5.1 s; B0 then arrives at
    # 4.2 s, B1 at 7.2 s
    assert arrows == {(0, 0.0, 1, 1.1e6), (0, 1e6, 1, 4.1e6), (1, 2.1e6, 0, 4.2e6), (1, 5.1e6, 0, 7.2e6)}


def test_a_counter_shows_what_a_rank_holds(shown):
    counts = [(e["ts"], e["args"]["activations"]) for e in shown if e["ph"] == "C" and e["pid"] == 0]
    assert counts == [(0.0, 3), (1e6, 6), (6.2e6, 3), (9.2e6, 0)]


def test_messages_at_once_are_on_threads_of_their_own(tmp_path):
    program = ex.schedule("gpipe", n_ranks=2, n_micro_batches=3)
    ex.save(ex.simulate(program, ex.Costs(latency=2.5)), tmp_path / "run.json")  # each still flies while two begin
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    sends = [(e["ts"], e["tid"]) for e in events if e["ph"] == "X" and e["name"].startswith("0SEND_F")]
    assert sorted(sends) == [(1e6, 1000), (2e6, 1001), (3e6, 1002)]


def test_a_file_written_anew_by_others_is_read_by_its_columns(tmp_path):
    trace = simulated()
    ex.save(trace, tmp_path / "run.json")
    text = json.dumps(json.loads((tmp_path / "run.json").read_text()), indent=1)
    (tmp_path / "run.json").write_text(text)
    same(ex.load(tmp_path / "run.json"), trace)


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"ph":"X"}]', "got a trace of another program"),
        ('{"traceEvents":[]}', r"run\.json: a trace that can be loaded was saved by explorer\.save; got a trace of an"),
        ("{}", "got other JSON"),
        ("7", "got other JSON"),
        ("", "a trace is whole JSON; got something else"),
        ("[" * 100_000, "nested a few levels deep; got far more"),
        ("9" * 5000, "a trace is whole JSON"),
        ('{"pipelineExplorer":{"format":"trace","version":2}}', "up to version 1; got 2; try a newer explorer"),
        ('{"pipelineExplorer":{"format":"trace","version":"1"}}', "version is a whole number from 1"),
        ('{"pipelineExplorer":[]}', "a trace is an object with names; got list"),
        ('{"pipelineExplorer":{"format":"recipe"}}', "format is 'trace'; got 'recipe'"),
    ],
)
def test_other_json_is_refused(tmp_path, text, message):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=message):
        ex.load(tmp_path / "run.json")


def changed(trace: ex.Trace, folder: Path, *keys: str, to: object) -> Path:
    ex.save(trace, folder / "run.json")
    whole = json.loads((folder / "run.json").read_text())
    at = whole["pipelineExplorer"]
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to(at[keys[-1]]) if callable(to) else to
    (folder / "run.json").write_text(json.dumps(whole))
    return folder / "run.json"


@pytest.mark.parametrize(
    ("keys", "to", "message"),
    [
        (("events", "start"), lambda c: c[:-1], r"run\.json: start is of length \d+, as the columns beside it"),
        (("events", "rank"), lambda c: [9, *c[1:]], "rank is from -1 to 1; got 9 in row 0"),
        (("events", "rank"), lambda c: [-1, *c[1:]], "an event is of a rank"),
        (("events", "stage"), lambda c: [0.5, *c[1:]], "stage is a list of whole numbers; got something else"),
        (("events", "kind"), lambda c: [99, *c[1:]], "kind is from 0 to 10; got 99 in row 0"),
        (("events", "slot"), lambda c: [10**6, *c[1:]], "of a rank and, where it has one, a slot of the program"),
        (("events", "end"), lambda c: [-5.0, *c[1:]], "ends after its start"),
        (("events", "end"), lambda c: [None, *c[1:]], "end is a list of numbers"),
        (("events", "end"), lambda c: [float("inf"), *c[1:]], "end is from -1e"),
        (("events", "bytes"), lambda c: [10**30, *c[1:]], "bytes is a list of whole numbers"),
        (("events",), "all", "events is an object with names; got 'all'"),
        (("memory", "rank"), lambda c: [-1, *c[1:]], "a change of memory is of a rank"),
        (("codes", "kind"), ["F", "__class__"], "codes of kind is a list of F, B"),
        (("program", "n_micro_batches"), 2**31 - 1, "every stage runs every micro-batch; got 4 stages, 2,147,483,647"),
        (("program", "rank_offsets"), [0, 5, 1], "rank_offsets begin with 0 and never fall"),
        (("program", "n_ranks"), 10**9, "rank_offsets hold where each rank's slots begin"),
        (("program", "routes"), [[0, 7, 1, 0]], "routes is from 0 to 1; got 7"),
        (("program", "name"), "x" * 10_000, "name is a short text"),
        (("costs", "forward"), "__import__('os')", "forward is a number"),
        (("costs", "frobnicate"), 1, "got 'frobnicate'"),
        (("costs", "delays"), {"0X0": 1}, "in delays"),
        (("clock_offsets",), [[0, 0, 0]], "three numbers a rank"),
        (("clock",), 5, "clock is a short text; got 5"),
        (("messages",), ["ordered"], "messages is one of rendezvous, .*, or null; got "),
    ],
)
def test_a_trace_in_which_something_cannot_be_is_refused_with_its_name(tmp_path, keys, to, message):
    if keys == ("costs", "frobnicate"):
        path = changed(simulated(), tmp_path, "costs", to=lambda costs: {**costs, "frobnicate": 1})
    else:
        path = changed(simulated(), tmp_path, *keys, to=to)
    with pytest.raises(InputError, match=message) as refused:
        ex.load(path)
    assert str(refused.value).startswith("run.json: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("simulated", "dreamt", r"run\.csv: origin is one of simulated, measured, .*; got 'dreamt' in row"),
        (",kind,", ",sort,", "kind is missing"),
        ("\n0,0,", "\n0,zero,", "rank is a list of whole numbers"),
        ('"format"', "format", "a table behind one line of JSON"),
        ("\n0,0,", '\n"0,0,', "something else"),
    ],
)
def test_a_table_in_which_something_cannot_be_is_refused(tmp_path, old, new, message):
    ex.save(simulated(), tmp_path / "run.csv")
    text = (tmp_path / "run.csv").read_text()
    assert old in text
    (tmp_path / "run.csv").write_text(new.join(text.rsplit(old, 1)))
    with pytest.raises(InputError, match=message):
        ex.load(tmp_path / "run.csv")


def test_broken_compressed_files_are_refused(tmp_path):
    ex.save(simulated(), tmp_path / "run.json.gz")
    whole = (tmp_path / "run.json.gz").read_bytes()
    for content in (whole[:-9], whole[: len(whole) // 2], b"{}", b"\x1f\x8b" + whole[2:40] + b"\xff" * 90):
        (tmp_path / "run.json.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"whole and compressed; got 'run\.json\.gz'"):
            ex.load(tmp_path / "run.json.gz")


def test_a_small_file_that_becomes_a_huge_one_is_not_unpacked_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.io.files._LARGEST", 2**20)
    with gzip.open(tmp_path / "run.json.gz", "wb", compresslevel=1) as file:
        file.write(b" " * 2**22)
    with pytest.raises(InputError, match=r"at most 1 MiB; got 'run\.json\.gz' with more; try fewer steps"):
        ex.load(tmp_path / "run.json.gz")


@given(st.integers(0, 10**6), st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused_with_its_name(tmp_path, place, byte):
    if not (tmp_path / "whole.json").exists():
        ex.save(simulated(), tmp_path / "whole.json")
    content = bytearray((tmp_path / "whole.json").read_bytes())
    content[-1 - place % (len(content) // 2)] = byte
    (tmp_path / "run.json").write_bytes(content)
    try:
        assert isinstance(ex.load(tmp_path / "run.json"), ex.Trace)
    except ExplorerError as error:
        assert "run.json" in str(error)  # noqa: PT017  either outcome is right


def test_save_refuses_other_suffixes_values_and_times(tmp_path):
    trace = simulated()
    with pytest.raises(InputError, match=r"a trace is saved as \.json, which .*; got 'run\.pkl'; try run\.json\.gz"):
        ex.save(trace, tmp_path / "run.pkl")
    with pytest.raises(InputError, match="what is saved is a Program or a Trace; got dict"):
        ex.save({}, tmp_path / "run.json")
    broken = dataclasses.replace(trace, events=dataclasses.replace(trace.events, start=trace.events.start.copy()))
    broken.events.start[:] = np.nan  # a trace is checked when it is made; its columns can still be written to
    with pytest.raises(InputError, match="times that are saved are finite; got others in start"):
        ex.save(broken, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_a_file_stays_as_it_was_where_its_successor_cannot_be_written(tmp_path, monkeypatch):
    ex.save(simulated(), tmp_path / "run.json")
    before = (tmp_path / "run.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"where files can be written; .* \(No space left on device\)"):
        ex.save(simulated("1f1b"), tmp_path / "run.json")
    assert (tmp_path / "run.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path):
    ex.save(simulated(), tmp_path / "run.csv")
    head = (tmp_path / "run.csv").read_text().partition("\n")[0]
    (tmp_path / "run.csv").write_text(head + "\n" + "a," * 1_000_000)
    with pytest.raises(
        InputError, match=r"run\.csv: the rows of a trace have at most 256 columns; got 1,000,001; save"
    ):
        ex.load(tmp_path / "run.csv")
