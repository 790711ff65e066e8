"""Recordings from strangers: read, or refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import explorer as ex
from explorer.errors import ExplorerError, InputError

HEADER = {
    "format": "recording",
    "version": 1,
    "schedule": "Own",
    "n_micro_batches": 1,
    "n_stages": 1,
    "rank": 0,
    "n_ranks": 1,
    "group": [0],
    "run": "r",
    "clock": "c",
}
ACTIONS = {"kind": ["F", "B"], "stage": [0, 0], "micro_batch": [0, 0], "start": [10, 40], "end": [30, 90]}
NONE = {name: [] for name in ("kind", "stage", "micro_batch", "peer", "bytes", "posted", "wanted", "got")}
KEPT = {name: [] for name in ("action", "at_end", "category", "stage", "micro_batch", "delta")}

UPDATE = {"step": 0, "begin": 2000, "end": 6000, "stage": [0], "bytes": [8]}


def line(**changed: object) -> dict[str, object]:
    step = {"step": 0, "trains": True, "begin": 1000, "end": 1100, "error": None}
    return {**step, "actions": ACTIONS, "messages": NONE, "memory": KEPT, **changed}


def written(folder: Path, *lines: object) -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    (folder / "rank-00000.jsonl").write_text("".join(f"{text}\n" for text in texts))
    return folder


def test_times_are_seconds_from_the_first_action(tmp_path):
    trace = ex.load(written(tmp_path, HEADER, line()))
    assert trace.events.start.tolist() == pytest.approx([0.0, 30e-9])
    assert trace.events.end.tolist() == pytest.approx([20e-9, 80e-9])
    assert str(trace.program) == "rank 0: 0F0 0B0"


def updates(trace):
    rows = trace.events.take(trace.events.kind == ex.Kind.U)
    return list(zip(rows.step.tolist(), rows.stage.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True))


def test_an_update_is_a_row_behind_its_step_and_in_no_makespan(tmp_path):
    without = ex.load(written(tmp_path, HEADER, line(), line(step=1, begin=8000)))
    trace = ex.load(written(tmp_path, HEADER, line(), {"update": UPDATE}, line(step=1, begin=8000)))
    ((step, stage, start, end),) = updates(trace)  # the first action begins at 1,010 ns
    assert (step, stage, start, end) == (0, 0, pytest.approx(990e-9), pytest.approx(4990e-9))
    rows = trace.events.take(trace.events.kind == ex.Kind.U)
    assert (rows.slot.tolist(), rows.micro_batch.tolist()) == ([-1], [-1])
    assert rows.origin.tolist() == [ex.Origin.MEASURED]
    assert trace.makespan == without.makespan
    assert trace.bubble_ratio == without.bubble_ratio


def test_an_update_of_several_stages_is_shared_out_by_bytes_and_said_to_be_modelled(tmp_path):
    of_two = {"kind": ["F", "F", "B", "B"], "stage": [0, 1, 1, 0], "micro_batch": [0] * 4}
    step = line(actions={**of_two, "start": [10, 30, 50, 70], "end": [30, 50, 70, 90]})
    update = {**UPDATE, "stage": [0, 1], "bytes": [300, 100]}
    trace = ex.load(written(tmp_path, {**HEADER, "n_stages": 2}, step, {"update": update}))
    first, second = updates(trace)
    assert first == (0, 0, pytest.approx(990e-9), pytest.approx(3990e-9))
    assert second == (0, 1, pytest.approx(3990e-9), pytest.approx(4990e-9))
    rows = trace.events.take(trace.events.kind == ex.Kind.U)
    assert rows.origin.tolist() == [ex.Origin.MODELLED] * 2


def test_an_update_of_a_step_that_is_left_out_is_left_out(tmp_path):
    update, later = {"update": UPDATE}, {"update": {**UPDATE, "step": 1}}
    with pytest.warns(UserWarning, match="step 1 broke off"):
        trace = ex.load(written(tmp_path, HEADER, line(), update, line(step=1, error="ValueError: x"), later))
    assert [step for step, *_ in updates(trace)] == [0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), r"rank-00000\.jsonl: a recording begins with a line about its rank; got none"),
        ((HEADER,), "at least one step that every rank has ended; got none"),
        ((HEADER, line(error="ValueError: x")), "at least one step that every rank has ended; got none"),
        (("{", line()), r"rank-00000\.jsonl, line 1: a line is a JSON object; got '\{'"),
        ((HEADER, "[]"), r"rank-00000\.jsonl, line 2: a line is a JSON object"),
        ((HEADER, "[" * 100_000), "line 2: a line is a JSON object"),
        (({**HEADER, "format": "pickle"},), "line 1: format is 'recording'; got 'pickle'"),
        (({**HEADER, "version": 2},), "reads recordings up to version 1; got 2"),
        (({**HEADER, "rank": 1},), "rank is a whole number from 0 to 0; got 1"),
        (({**HEADER, "n_ranks": 10**9},), "n_ranks is a whole number from 1 to 65,536"),
        ((HEADER, line(step=-1)), "line 2: step is a whole number from 0"),
        ((HEADER, line(actions={**ACTIONS, "kind": ["F", "X"]})), "kind is one of F, B, I, W"),
        ((HEADER, line(actions={**ACTIONS, "kind": ["F", ["B"]]})), "kind is one of F, B, I, W"),
        ((HEADER, line(actions={**ACTIONS, "stage": [0, 5]})), "stage is from 0 to 0; got 5 in row 1"),
        ((HEADER, line(actions={**ACTIONS, "end": [30]})), "end is of length 2, as the columns beside it; got 1"),
        ((HEADER, line(actions=[1])), "actions is an object of lists; got list"),
        ((HEADER, line(memory={**KEPT, "at_end": [1]})), "at_end is a list of true and false"),
        ((HEADER, {"clock": {"time": "x"}}), "line 2: clock is a list of numbers"),
        ((HEADER, {"update": 3}), "line 2: update is an object; got 3"),
        ((HEADER, {"update": {**UPDATE, "step": "0"}}), "line 2: step is a whole number from 0"),
        ((HEADER, {"update": {**UPDATE, "end": 100}}), "line 2: end is a whole number from 2,000 to"),
        ((HEADER, {"update": {**UPDATE, "stage": 0}}), "line 2: stage is a list; got 0"),
        ((HEADER, {"update": {**UPDATE, "stage": [1]}}), "line 2: stage is from 0 to 0; got 1"),
        ((HEADER, {"update": {**UPDATE, "bytes": []}}), "line 2: bytes is of length 1, as the columns beside it"),
    ],
)
def test_what_cannot_be_is_refused_with_file_and_line(tmp_path, lines, message, recwarn):
    with pytest.raises(InputError, match=message):
        ex.load(written(tmp_path, *lines))


def test_an_order_that_is_no_whole_program_is_refused(tmp_path):
    only_forward = {name: column[:1] for name, column in ACTIONS.items()}
    twice = {name: [*column, column[1]] for name, column in ACTIONS.items()}
    assert not ex.load(written(tmp_path, HEADER, line(actions=only_forward))).program.has_backward
    with pytest.raises(ExplorerError, match=r"what was recorded: .*0B0"):
        ex.load(written(tmp_path, HEADER, line(actions=twice)))


def test_steps_of_different_orders_are_refused(tmp_path):
    other = {name: column[:1] for name, column in ACTIONS.items()}
    with pytest.raises(InputError, match="a trace holds one order; got another in step 1 than in step 0 on rank 0"):
        ex.load(written(tmp_path, HEADER, line(), line(step=1, actions=other)))


def test_a_folder_without_a_recording_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a recording has a file rank-\*\.jsonl for each rank; got none in"):
        ex.load(tmp_path)


def test_other_pipelines_of_a_folder_are_named(tmp_path):
    written(tmp_path, HEADER, line())
    second = {**HEADER, "group": [1]}
    text = json.dumps(second) + "\n" + json.dumps(line()) + "\n" + json.dumps(line(step=1)) + "\n"
    (tmp_path / "rank-00001.jsonl").write_text(text)
    with pytest.warns(UserWarning, match=r"there are other pipelines; load rank-00001\.jsonl for that of its rank"):
        assert ex.load(tmp_path).steps == [0]
    assert ex.load(tmp_path / "rank-00001.jsonl").steps == [0, 1]
