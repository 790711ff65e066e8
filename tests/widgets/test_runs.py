"""Runs of the app, without a browser: what is shown, where errors go, and who wins when the controls move."""

from __future__ import annotations

import re
import threading
import time

import pytest
import torch
from torch import nn

import explorer as ex

MSE = nn.functional.mse_loss


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


@pytest.fixture
def open_app():
    """Opens an app on four layers with `last` in the end; all are closed afterwards."""
    opened = []

    def open_one(last=None, *, n_items=32, n_layers=4, layer=nn.Linear, backend="kernel", **settings):
        layers = [layer(8, 8) for _ in range(n_layers)]
        layers[-1] = last or layers[-1]
        batch = torch.ones(n_items, 8), torch.zeros(n_items, 8)
        opened.append(ex.explore(layers, batch=batch, loss=MSE, backend=backend, **settings))
        return opened[-1]

    yield open_one
    for app in opened:
        app.close()
        assert app._runner.join(10)


def until(condition, what, *, seconds=30.0):
    """Wait for `condition` to hold."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.005)


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
