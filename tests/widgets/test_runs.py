"""Runs of the app, without a browser: what is shown, where errors go, and who wins when the controls move."""

from __future__ import annotations

import re
import threading
import time

import pytest
from torch import nn

from explorer.errors import MissingError, ProgramError
from explorer.execute import SlowRank
from explorer.widgets.words import not_begun
from tests.widgets.waiting import until


class Kaput(nn.Module):
    def forward(self, x):
        raise ValueError("kaput <img src=x onerror=alert(1)>")


class NotANumber(nn.Module):
    def forward(self, x):
        return x * float("nan")


class Slow(nn.Linear):
    def forward(self, x):
        time.sleep(0.01)
        return super().forward(x)


def finish(app):
    """Press Run, and wait for the end."""
    app.panel.run.click()
    until(lambda: app.panel.stop.disabled, "the end of the run")
    with app._lock:  # what there is to say is said within it
        pass


def test_run_shows_measured_numbers_losses_and_parity(open_app):
    app = open_app()
    finish(app)
    assert app.run.parity
    assert app._picture._drawn.measured is app.run.trace
    shown = {number["name"]: number for number in app.timeline.numbers}
    assert shown["makespan"]["values"][1].endswith(" measured")
    assert shown["same as one process"]["values"][0].startswith("yes")
    assert shown["loss"]["of"] == "of 3 steps"
    assert app.panel.status.startswith("Ran your model · virtual ranks: measured operations, modelled placement")


@pytest.mark.parametrize(
    ("model", "place", "message"),
    [
        ({"last": Kaput()}, "", r"failed in layer 3: ValueError: kaput <img"),
        ({"last": NotANumber()}, "", "a loss must be a finite number; .* gave nan"),
        ({"last": nn.Linear(9, 8)}, "model", "parts must fit each other; layer 3 .* does not take what layer 2 gives"),
        ({"n_layers": 3}, "n_ranks", "every stage needs a layer of its own; got 4 stages and 3 layers; try 3 stages"),
        ({"n_items": 30}, "n_micro_batches", "multiple of Micro-batches; got 30 and 8; try 10 or 6"),
    ],
)
def test_a_run_that_fails_says_so_where_the_fault_is_and_the_app_goes_on(open_app, model, place, message):
    app = open_app(**model)
    finish(app)
    said = app.controls.fields[place].explanation if place else app.panel.error
    assert re.search(message, said), said
    assert "<img" not in app.panel._error.value  # escaped on its way to the page
    assert app.panel.status.startswith("The run failed")
    app.controls.fields["n_micro_batches"].control.value = 4
    assert app.panel.status == "Predicted from the costs set here"
    assert app.prediction.program.n_micro_batches == 4


def test_the_latest_wish_wins_and_runs_by_itself(open_app):
    app = open_app(layer=Slow, run_on_change=True)
    control = app.controls.fields["n_micro_batches"].control
    for n_micro_batches in (16, 2, 4):
        control.value = n_micro_batches
    until(lambda: app.run is not None, "a run that began by itself")
    assert app.run.trace.program.n_micro_batches == 4
    control.value = 16
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0, "its first operation")
    control.value = 2  # stops the one under way
    until(lambda: app.run.trace.program.n_micro_batches == 2, "the run of the last value")


def test_stop_ends_a_run_and_keeps_what_was_measured(open_app):
    app = open_app(layer=Slow, n_steps=20)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.02, "the run to get under way")
    app.panel.stop.click()
    until(lambda: app.panel.stop.disabled, "the end", seconds=1.0)
    assert app.panel.status.startswith("Stopped at ")
    assert app.run is None


def test_frames_are_drawn_by_the_thread_that_runs(open_app):
    """A thread beside it would hold the interpreter against the operations that are timed."""
    app = open_app(layer=Slow)
    drawers = set()
    draw = app._runner._on_frame
    app._runner._on_frame = lambda job: (drawers.add(threading.current_thread().name), draw(job))
    finish(app)
    assert drawers == {"explorer-runner"}


def test_closing_ends_a_run(open_app):
    app = open_app(layer=Slow, n_steps=20)
    app.panel.run.click()
    until(lambda: app._shown is not None, "the run to begin")
    app.close()
    assert app._runner.join(5)


def test_a_schedule_that_cannot_run_is_calmly_predicted_on_change_and_refused_when_asked(open_app):
    app = open_app(layer=nn.Linear, n_layers=8, run_on_change=True)
    begun = []
    app._runner._on_start, start = lambda job: (begun.append(job.by_itself), start(job)), app._runner._on_start
    told = []
    app.panel._error.observe(lambda change: told.append(change["new"]), "value")
    app.panel.stop.observe(lambda change: told.append(change["new"]), "disabled")
    app.controls.fields["schedule"].control.value = "dualpipe"
    until(lambda: "Simulated only" in app.panel.status, "the reason")
    assert app.panel.status == (
        "Predicted from the costs set here. Simulated only: torch's runtime holds each stage once, so a run needs one "
        "weight copy a stage; dualpipe has 2 of stage 0"
    )
    app.controls.fields["n_micro_batches"].control.value = 16
    assert app.panel.status == "Predicted from the costs set here"
    until(lambda: "Simulated only" in app.panel.status, "the reason again")
    assert begun == [True, True]
    assert told == []  # neither red nor any button moved
    finish(app)
    assert "one weight copy a stage" in app.panel.error
    assert app.panel.status.startswith("The run failed")
    app.controls.fields["schedule"].control.value = "1f1b"
    assert app.panel.error == ""
    until(lambda: app.run is not None, "a run that began by itself")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ProgramError("no run has two; x has two; simulate it instead"), "no run has two; x has two"),
        (ProgramError("F0 is missing"), "F0 is missing"),
        (MissingError("a run needs torch; it is not there; try pip"), "a run needs torch; it is not there; try pip"),
        (OSError("libtorch: <no such file>"), "OSError: libtorch: <no such file>"),
    ],
)
def test_why_a_run_cannot_be_is_one_sentence_without_what_is_done_already(error, said):
    assert not_begun(error) == f"Predicted from the costs set here. Simulated only: {said}"


def test_a_run_without_torch_is_not_missed_until_it_is_asked_for(open_app, monkeypatch):
    def missing(_program):
        raise MissingError("a run needs torch; it is not installed; try pip install torch")

    monkeypatch.setattr("explorer.widgets.explorer.check_runs", missing)
    app = open_app(run_on_change=True)
    app.controls.fields["n_micro_batches"].control.value = 16
    until(lambda: "Simulated only: a run needs torch" in app.panel.status, "the reason")
    assert app.panel.error == ""


def test_what_is_measured_when_a_run_is_stopped_stays_as_a_picture_that_can_be_explained(open_app):
    app = open_app(layer=Slow, n_steps=20)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.02, "the run to get under way")
    app.panel.stop.click()
    until(lambda: app.panel.status.startswith("Stopped at "), "the end")
    until(lambda: app._picture._drawn.measured is not None and not app._picture._drawn.live, "the last picture")
    app.timeline.explain = True
    assert app.timeline.gaps["n"] > 0


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("1f1b", "Predicted from the costs set here. A run of 2,560 operations does not begin by itself: press Run"),
        ("dualpipe", "Predicted from the costs set here. Simulated only: torch's runtime holds each stage once"),
    ],
)
def test_a_long_run_waits_to_be_asked_for_but_not_one_that_cannot_be(open_app, schedule, said):
    app = open_app(run_on_change=True, n_steps=40, n_micro_batches=16)
    app.controls.fields["n_micro_batches"].control.value = 8  # 4 ranks, F and B: 64 operations a step
    app.controls.fields["schedule"].control.value = schedule
    until(lambda: app.panel.status.startswith(said), said)
    assert app.panel.error == ""


# ── Stop, and what waits ────────────────────────────────────────────────────────────────────────────────────────────


def held_back(app, monkeypatch):
    """Let the app's runs wait for their turn until the event that is returned is set."""
    take, goes_on = app._runner._take, threading.Event()
    monkeypatch.setattr(app._runner, "_take", lambda: goes_on.wait(30) and take())
    return goes_on


def test_stop_ends_the_waiting_of_a_run_that_has_not_begun(open_app, monkeypatch):
    app = open_app()
    goes_on = held_back(app, monkeypatch)
    app.panel.run.click()
    assert not app.panel.stop.disabled
    app.panel.stop.click()
    assert app.panel.stop.disabled
    assert app.panel.status == "Stopped before it began. Predicted from the costs set here"
    goes_on.set()


def test_a_control_that_moves_while_a_run_waits_leaves_nothing_to_stop(open_app, monkeypatch):
    app = open_app()
    goes_on = held_back(app, monkeypatch)
    app.panel.run.click()
    app.controls.fields["n_micro_batches"].control.value = 4
    assert app.panel.stop.disabled
    assert app.panel.status == "Predicted from the costs set here"
    goes_on.set()


def test_stop_while_one_run_ends_and_another_waits_stops_both(open_app):
    app = open_app(layer=Slow, n_steps=20)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.02, "the run to get under way")
    with app._lock:  # the first cannot tell of its end in between
        app.panel.run.click()
        app.panel.stop.click()
    until(lambda: app.panel.stop.disabled, "the end")
    until(lambda: app.panel.status == "Stopped before it began. Predicted from the costs set here", "what was stopped")


def test_progress_is_hidden_until_a_run_begins(open_app):
    app = open_app()

    def hidden():
        return "pipeline-hidden" in app.panel._progress._dom_classes

    assert hidden()
    finish(app)
    assert not hidden()


def test_compare_after_a_run_is_of_what_it_measured_or_of_the_controls(open_app):
    app = open_app(layer=Slow)
    app.places.choice.value = "compare"
    until(lambda: "predicted from the costs set here" in app.places.page, "the table of the controls")
    assert "pipeline-hidden" in app.places.basis._dom_classes
    assert "memory, " not in app.places.page
    finish(app)
    until(lambda: "predicted from the costs measured by the run" in app.places.page, "the table of the run")
    assert "pipeline-hidden" not in app.places.basis._dom_classes
    assert "memory, " in app.places.page
    app.places.basis.value = False
    until(lambda: "predicted from the costs set here" in app.places.page, "the table of the controls again")
    app.places.basis.value = True
    until(lambda: "measured by the run" in app.places.page, "the table of the run again")
    app.controls.fields["n_micro_batches"].control.value = 4
    until(lambda: "4 micro-batches, predicted from the costs set here" in app.places.page, "no run any more")


def test_why_after_a_run_with_a_slow_rank_calls_it_so(open_app):
    app = open_app(layer=Slow, n_steps=1)
    app.panel.lab.faults = (SlowRank(rank=2, factor=3.0),)
    finish(app)
    app.places.choice.value = "compare"
    until(lambda: "measured by the run, its faults included" in app.places.page, "the table of the run")
    app.places.choice.value = "why"
    until(lambda: "a slow rank: rank 2, by a fault" in app.places.page, "the cause")
    assert "rank 2 runs without the fault that slows it down (3×)" in app.places.page
