"""What the picture tells and is told, without a browser."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import explorer as ex
from explorer.core import Mark
from explorer.errors import InputError
from explorer.figures.palette import CAUSE_LOOKS
from explorer.widgets.causes import causes_of
from explorer.widgets.gaps import Gaps, pack_gaps
from explorer.widgets.page import picture_page
from explorer.widgets.picture import Frame, Picture
from explorer.widgets.saving import saved_text


def _read(column):
    return np.frombuffer(column["data"], column["dtype"])


@pytest.fixture
def trace():
    # rank 0  F0 F1 .  B0 B0 .  B1 B1
    # rank 1  .  F0 B0 B0 F1 B1 B1 .       both until 9
    return ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2), ex.Costs(forward=1.0, backward=2.0))


@pytest.fixture
def picture(trace):
    made = Picture(threading.RLock())
    made.show(Frame(trace, None, "label", trace.makespan, gaps=causes_of, state={"n_ranks": np.int64(2)}))
    yield made
    made.close()
    made.timeline.close()


def _actions(frame):
    return [f"{row.kind}{row.micro_batch}@{row.rank}" for row in frame.itertuples()]


def test_a_selected_bar_is_a_row_of_the_trace(picture):
    picture.timeline.selected = {"of": "predicted", "row": 3}  # by rank, kind, start: F0 F1 B0 B1 of rank 0
    assert _actions(picture.selection()) == ["B1@0"]


def test_a_selected_stretch_is_all_that_runs_there(picture):
    picture.timeline.selected = {"of": "predicted", "from": 1500.0, "to": 3500.0, "ranks": [1, 1]}
    assert _actions(picture.selection()) == ["F0@1", "B0@1"]
    picture.timeline.selected = {"of": "predicted", "from": 0.0, "to": 1000.0, "ranks": [0, 1]}
    assert _actions(picture.selection()) == ["F0@0"]


def test_nothing_selected_is_an_empty_table(picture):
    assert len(picture.selection()) == 0
    assert "micro_batch" in picture.selection().columns


def test_gaps_are_packed_by_rank_and_start():
    gaps = Gaps(
        rank=np.array([1, 0, 0]),
        start=np.array([0.0, 3.0, 1.0]),
        end=np.array([1.0, 4.0, 2.0]),
        cause=np.array([2, 0, 0]),
        causes=("fill", "drain", "latency"),
        sentence=["first", "second", "third"].__getitem__,
    )
    packed = pack_gaps(gaps, 2)
    assert _read(packed["offset"]).tolist() == [0, 2, 3]
    assert _read(packed["start"]).tolist() == [1000.0, 3000.0, 0.0]
    assert _read(packed["cause"]).tolist() == [0, 0, 1]
    assert [look["letter"] for look in packed["causes"]] == ["f", "l"]
    assert packed["sentences"] == ["third", "second", "first"]


def test_sentences_of_many_gaps_stay_until_asked_for(picture, trace):
    n = 1500
    many = Gaps(np.zeros(n, int), np.arange(n) * 1.0, np.arange(n) + 0.5, np.zeros(n, int), ("host",), "gap {}".format)
    picture.show(Frame(trace, None, "label", trace.makespan, gaps=lambda _: many))
    picture.timeline.explain = True
    picture.timeline.painted = picture.timeline.seq
    assert picture.timeline.gaps["n"] == n
    assert picture.timeline.gaps["sentences"] == []
    sent = []
    picture.timeline.send = sent.append
    picture._asked(picture.timeline, {"sentence": 1234}, [])
    assert sent == [{"sentence": 1234, "text": "gap 1234"}]


def test_causes_are_sent_when_wanted_and_only_once_the_bars_are_seen(picture, trace):
    assert picture.timeline.gaps == {}
    picture.timeline.explain = True
    assert {look["title"] for look in picture.timeline.gaps["causes"]} == {"the pipeline fills", "the pipeline drains"}
    picture.timeline.painted = picture.timeline.seq
    picture.show(Frame(trace, None, "label", trace.makespan, gaps=causes_of))
    assert picture.timeline.gaps == {}
    picture.timeline.painted = picture.timeline.seq
    idle = _read(picture.timeline.gaps["end"]) - _read(picture.timeline.gaps["start"])
    assert idle.sum() == pytest.approx(trace.idle_per_rank.sum() * 1e3)
    picture.timeline.explain = False
    assert picture.timeline.gaps == {}


def test_every_cause_has_a_look_of_its_own():
    from explorer.analysis.cause import Cause

    assert set(CAUSE_LOOKS) == {cause.name.lower() for cause in Cause}
    assert len({look.letter for look in CAUSE_LOOKS.values()}) == len(CAUSE_LOOKS)
    assert len({(look.color, look.pattern) for look in CAUSE_LOOKS.values()}) == len(CAUSE_LOOKS)


def test_page_needs_no_network_and_its_texts_end_no_script(picture):
    picture.timeline.label = "</script><img src=x onerror=alert(1)>"
    page = picture_page(picture.timeline, title="</title><b>")
    assert "<img" not in page
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_events_are_saved_as_a_table(picture, trace, tmp_path):
    saved = saved_text("csv", picture.timeline, trace, {})
    assert saved["saved"] == "pipeline.csv"
    (tmp_path / "pipeline.csv").write_text(saved["text"])
    assert ex.load(tmp_path / "pipeline.csv").makespan == trace.makespan
    table = pd.read_csv(io.StringIO(saved["text"]), comment="#")
    assert table.end.max() == 9.0
    assert len(table) == 8


def test_the_whole_state_is_saved(picture, trace, tmp_path):
    picture.timeline.search = "m1"
    controls = {"n_ranks": np.int64(2), "bandwidth": np.inf}
    text = saved_text("json", picture.timeline, trace, controls)["text"]
    state = json.loads(text)["app"]
    assert state["controls"] == {"n_ranks": 2, "bandwidth": "Infinity"}
    assert state["view"]["search"] == "m1"
    (tmp_path / "pipeline.json").write_text(text)
    loaded = ex.load(tmp_path / "pipeline.json")
    assert (loaded.program.name, loaded.summary()) == ("1f1b", trace.summary())
    assert loaded.costs.latency == trace.costs.latency


def test_another_kind_of_file_is_refused(picture, trace):
    with pytest.raises(InputError, match="a picture is saved as html, csv, json; got 'gif'; try html"):
        saved_text("gif", picture.timeline, trace, {})


def test_marks_come_with_the_frame_of_the_run_they_are_of(picture, trace):
    faults = (Mark(0, 1, 0.25, "slow rank=1"), Mark(0, 0, float("nan"), "kill rank=0"))  # the second at no known time
    picture.show(Frame(trace, replace(trace, marks=faults), "label", trace.makespan))
    picture.timeline.painted = picture.timeline.seq
    assert picture.timeline.marks == [{"rank": 1, "time": 250.0, "text": "slow rank=1"}]
    picture.show(Frame(trace, None, "label", trace.makespan))
    assert picture.timeline.marks == []
