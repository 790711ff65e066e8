from __future__ import annotations

import base64
import gc
import re

import ipywidgets
import pytest

import explorer as ex
from explorer.errors import InputError
from explorer.widgets.picture import Picture
from explorer.widgets.timeline import Timeline


def _value(app: ex.Explorer, name: str, value: object) -> None:
    app.controls.fields[name].control.value = value


@pytest.fixture
def app():
    made = ex.explore(forward=1.0, run_on_change=False)
    yield made
    made.close()


def test_explorer_reads_the_formula_of_1f1b(app):
    # (M + P − 1)(F + B) and (P − 1)/(M + P − 1), with P = 4, M = 8
    assert repr(app) == (
        "Explorer(schedule='1f1b', n_ranks=4, n_chunks=1, n_micro_batches=8, makespan=33, bubble_ratio=0.2727)"
    )


def test_chunks_follow_the_schedule_until_chosen(app):
    _value(app, "schedule", "interleaved_1f1b")
    assert "n_chunks=2, n_micro_batches=8, makespan=28.5" in repr(app)  # a rank's share stays the same
    assert "Stages: 4 ranks × 2 chunks = 8" in app.controls.fields["n_chunks"].note.value
    _value(app, "schedule", "1f1b")
    assert "n_chunks=1" in repr(app)


def test_illegal_number_is_explained_where_it_is_and_the_picture_kept(app):
    _value(app, "schedule", "interleaved_1f1b")
    drawn = app.timeline.predicted
    _value(app, "n_micro_batches", 10)
    assert "multiple of Ranks; got 10 and 4; try 8 or 12" in app.controls.fields["n_micro_batches"].explanation
    assert app.timeline.stale
    assert app.timeline.predicted == drawn
    _value(app, "n_micro_batches", 12)
    assert not app.timeline.stale
    assert app.controls.fields["n_micro_batches"].explanation == ""


@pytest.mark.slow
def test_rebuilding_leaves_no_widget_and_no_trace_behind():
    registry = ipywidgets.widgets.widget._instances

    def alive() -> dict[type, int]:
        gc.collect()
        objects = [type(one) for one in gc.get_objects()]
        return {kind: objects.count(kind) for kind in (ex.Explorer, Timeline, Picture, ex.Trace)}

    ex.explore(run_on_change=False).close()
    before, alive_before = len(registry), alive()
    for _ in range(50):
        ex.explore(run_on_change=False).close()
    assert len(registry) == before
    assert alive() == alive_before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rank": 4}, "explore takes .*; got n_rank; did you mean n_ranks"),
        ({"schedule": "1f2b"}, "did you mean 1f1b"),
        ({"n_ranks": 0}, "n_ranks is a whole number of at least 1; got 0; try 1"),
        ({"model": object()}, "needs batch and loss; batch is missing"),
        ({"batch": 1}, "batch belongs to a model of your own"),
    ],
)
def test_explore_refuses_what_it_does_not_know(settings, message):
    with pytest.raises(InputError, match=message):
        ex.explore(**settings)


def test_errors_are_escaped(app):
    app.panel.fail("<img src=x onerror=alert(1)>")
    assert "<img" not in app.panel._error.value
    assert app.panel.error.startswith("<img")


def test_rules_of_messages_are_predicted_and_a_hang_is_named():
    app = ex.explore(n_ranks=4, n_micro_batches=8, forward=1.0, latency=0.25, run_on_change=False)
    try:
        assert app.prediction.trace.makespan == pytest.approx(37)
        _value(app, "messages", "buffered")
        assert app.prediction.trace.makespan == pytest.approx(37)
        _value(
            app, "messages", "rendezvous"
        )  # each waits for the other's receive: torch's 1F1B sends and receives at once
        assert "wait for each other in a circle" in app.panel.error
        _value(app, "messages", "free")
        assert app.panel.error == ""
    finally:
        app.close()


def test_a_saved_notebook_shows_a_still_where_no_kernel_is(app):
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    output = nbformat.v4.new_output("display_data", app._repr_mimebundle_())
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("app", outputs=[output])])
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    images = re.findall(r'src="data:image/svg\+xml;base64,([A-Za-z0-9+/=\s]+)"', page)
    still = next(text for text in (base64.b64decode(one).decode("utf-8") for one in images) if "1f1b" in text)
    assert "4 ranks, 8 micro-batches · simulated" in still
    assert ">B7</text>" in still


def test_the_selection_is_given_as_a_table(app):
    app.timeline.selected = {"of": "predicted", "from": 0.0, "to": 1000.0, "ranks": [0, 3]}
    assert app.selection[["kind", "rank", "micro_batch"]].values.tolist() == [["F", 0, 0]]


@pytest.fixture
def sent(monkeypatch):
    """The widgets that send a message, in order, but for a control's own echo."""
    messages = []

    def send(widget, message, buffers=None):
        if message["method"] != "echo_update":
            messages.append(widget)

    monkeypatch.setattr(ipywidgets.Widget, "_send", send)
    return messages


@pytest.mark.parametrize(
    ("begins", "name", "value"),
    [
        ({}, "n_micro_batches", 16),
        ({}, "n_micro_batches", 2),  # with a note under it
        ({}, "n_ranks", 8),  # which says more of processes and of stages
        ({}, "n_ranks", 64),  # whose bars can no longer be moved
        ({}, "latency", 1.0),
        ({"n_micro_batches": 10, "schedule": "interleaved_1f1b"}, "n_micro_batches", 12),  # what was refused is no more
        ({"moves": (("0F3", 4),)}, "n_micro_batches", 16),  # leaves an edited order
    ],
)
def test_the_pictures_message_is_the_first_after_a_change(begins, name, value, sent):
    app = ex.explore(forward=1.0, run_on_change=False, **begins)
    try:
        sent.clear()
        seq = app.timeline.seq
        app.controls.fields[name].control.set_state({"value": value})  # as the browser says it
        assert app.timeline.seq == seq + 1
        assert sent[0] is app.timeline
        assert sent.count(app.timeline) == 1 + bool(begins.get("moves"))  # and what is said of the order
    finally:
        app.close()
