"""Where a run works: chosen by cores until somebody chooses, followed live either way, stopped soon."""

from __future__ import annotations

import sys
import time

import pytest

import explorer as ex
from explorer.errors import InputError
from explorer.execute.cores import n_cores, quota
from explorer.widgets.where import contention
from tests.widgets.test_runs import Slow, finish
from tests.widgets.waiting import until

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked")


@pytest.mark.parametrize(
    ("cores", "backend", "sentence"),
    [
        (4, "processes", ""),
        (2, "kernel", "2 cores for 4 ranks: they run in this kernel, on virtual clocks; in processes they would wait"),
        (1, "processes", "1 core for 4 ranks: in processes they wait for each other's cores"),
    ],
)
def test_fewer_cores_than_ranks_are_told_of(cores, backend, sentence):
    said = contention(4, cores, backend)
    assert said.startswith(sentence)
    assert bool(said) == bool(sentence)


@pytest.mark.parametrize(("text", "cores"), [("max 100000", float("inf")), ("150000 100000", 1.5), ("", float("inf"))])
def test_a_container_may_use_as_many_cores_as_its_quota_says(text, cores, tmp_path):
    (tmp_path / "cpu.max").write_text(text)
    assert quota(tmp_path / "cpu.max") == cores
    assert quota(tmp_path / "none") == float("inf")
    assert n_cores() >= 1


def test_the_choice_follows_the_ranks_until_somebody_chooses(open_app, monkeypatch):
    monkeypatch.setattr("explorer.widgets.where.n_cores", lambda: 3)
    monkeypatch.setattr("explorer.widgets.where.Where.prepare", lambda self: None)
    app = open_app(backend=None)
    where, ranks = app.panel.where, app.controls.fields["n_ranks"].control
    assert (where.backend, where.note.value[:19]) == ("kernel", "3 cores for 4 ranks")
    ranks.value = 3
    assert (where.backend, where.note.value) == ("processes", "")
    where.control.value = "kernel"
    ranks.value = 2
    assert where.backend == "kernel"


def test_a_place_there_is_not_is_refused():
    with pytest.raises(InputError, match=r"backend is one of kernel, processes; got 'procesess'; did you mean proc"):
        ex.explore(backend="procesess")


@linux
@pytest.mark.slow
def test_a_run_in_processes_is_followed_while_it_goes_on_and_says_how_it_started(open_app):
    app = open_app(layer=Slow, backend="processes", n_ranks=2, n_layers=2, n_steps=3)
    finish(app)  # the first has processes to start
    frames = []
    draw = app._runner._on_frame
    app._runner._on_frame = lambda job: (frames.append((time.monotonic(), *job.recorder.step_progress)), draw(job))
    finish(app)
    assert app.run.parity
    assert app.run.trace.clock == "real"
    assert "real clocks: a process a rank, gloo on this machine; started warm in " in app.panel.status
    assert app.panel._progress.description == "Step 3 of 3"
    steps = {step for _, step, done in frames if 0 < done < 1}
    assert steps  # a step was drawn before it was over


@linux
@pytest.mark.slow
def test_stop_ends_a_run_in_processes_soon_and_the_next_one_works(open_app):
    app = open_app(layer=Slow, backend="processes", n_ranks=2, n_layers=2, n_steps=20)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.02, "the run to get under way")
    app.panel.stop.click()
    until(lambda: app.panel.stop.disabled, "the end", seconds=2.0)
    assert app.panel.status.startswith("Stopped at ")
    app.controls.fields["n_steps"].control.value = 1
    finish(app)
    assert app.run.parity


@linux
def test_links_of_the_controls_are_the_kernels_alone(open_app):
    app = open_app(backend="processes", n_ranks=2, n_layers=2, latency=0.01)
    finish(app)
    assert app.run.parity
    assert not app.panel.error
