"""The further costs: what their fields do to the prediction."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.core import Kind


@pytest.fixture
def app():
    made = ex.explore(forward=1.0, bandwidth=0.5e9, message_bytes=1e9, run_on_change=False)
    yield made
    made.close()


def _value(app: ex.Explorer, name: str, value: object) -> None:
    app.controls.fields[name].control.value = value


def test_ranks_a_node_share_links(app):
    # messages of 2 s, as in the example of `node_links`
    note = app.controls.fields["ranks_per_node"].note
    assert app.prediction.trace.makespan == pytest.approx(65)
    assert note.value == "0: no message hinders another"
    _value(app, "ranks_per_node", 2)
    assert app.prediction.trace.makespan == pytest.approx(66.5)
    assert note.value.startswith("2 nodes, each with one way out")
    _value(app, "sharing", "queue")
    assert app.prediction.trace.makespan == pytest.approx(65)
    _value(app, "ranks_per_node", 4)
    assert note.value == "one node: nothing passes between nodes"
    _value(app, "ranks_per_node", 3)
    _value(app, "bandwidth", float("inf"))
    assert note.value == "nothing to share: choose a Bandwidth"


def test_the_optimizer_is_seen_behind_the_makespan_and_rebuilds_nothing(app):
    before = app.prediction.trace.makespan
    _value(app, "update", 50.0)
    first = app.prediction.trace
    assert first.makespan == pytest.approx(before)
    assert (first.events.kind == Kind.U).sum() == 4
    assert {number["name"]: number["values"] for number in app.timeline.numbers}["with optimizer"] == ["65.05 s"]
    assert not (app.prediction.program.kind == Kind.U).any()  # a run brings its own optimizer
    _value(app, "update", 60.0)
    assert app.prediction.trace.program is first.program


def test_a_run_has_the_links_of_the_prediction():
    app = ex.explore(n_ranks=4, ranks_per_node=2, sharing="queue", update=0.5, run_on_change=False)
    try:
        settings = app.controls.settings()
        assert settings.update == 0.5
        assert settings.links().sharing == "queue"
        assert settings.links().links.shape == (4, 4, 2)
    finally:
        app.close()
