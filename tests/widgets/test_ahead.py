from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from explorer.errors import ScheduleError
from explorer.widgets import ahead
from explorer.widgets.ahead import Ahead, one_further
from explorer.widgets.settings import Settings

EIGHT = Settings(n_micro_batches=8)


@pytest.mark.parametrize(
    ("before", "now", "further"),
    [
        (8, 9, 10),
        (9, 8, 7),
        (8, 10, 12),
        (1, 2, 3),
        (8, 16, None),  # who doubles it once will hardly do so again
        (8, 8, None),
    ],
)
def test_a_slider_goes_on_as_it_went(before, now, further):
    found = one_further(replace(EIGHT, n_micro_batches=before), replace(EIGHT, n_micro_batches=now))
    assert found == (None if further is None else replace(EIGHT, n_micro_batches=further))


@pytest.mark.parametrize("other", [{"schedule": "gpipe"}, {"n_micro_batches": 9, "n_ranks": 5}])
def test_what_is_no_step_of_one_number_goes_nowhere(other):
    assert one_further(EIGHT, replace(EIGHT, **other)) is None


@pytest.fixture
def slow(monkeypatch):
    """Preparing takes until `let` is set; what was begun and done is told."""
    begun, let, done = threading.Event(), threading.Event(), []

    def prepare(settings):
        begun.set()
        let.wait(5)
        done.append(settings.n_micro_batches)
        if settings.n_micro_batches < 0:
            raise ScheduleError("none")

    monkeypatch.setattr(ahead, "_REST", 0.0)
    monkeypatch.setattr(ahead, "_prepare", prepare)
    return begun, let, done


def test_who_asks_for_what_is_being_prepared_waits_for_it(slow):
    begun, let, done = slow
    one = Ahead(may=lambda: True)
    one.expect(EIGHT)
    assert begun.wait(5)
    threading.Timer(0.05, let.set).start()
    one.await_this(EIGHT)
    assert done == [8]


def test_who_asks_for_another_does_not_wait(slow):
    begun, let, done = slow
    one = Ahead(may=lambda: True)
    one.expect(EIGHT)
    assert begun.wait(5)
    one.await_this(replace(EIGHT, n_micro_batches=9))
    assert done == []
    let.set()


def test_nothing_is_prepared_beside_a_run(slow):
    _, let, done = slow
    let.set()
    asked = threading.Event()
    one = Ahead(may=lambda: bool(asked.set()))
    one.expect(EIGHT)
    assert asked.wait(5)
    one.await_this(EIGHT)
    assert done == []


def test_what_cannot_be_is_left_to_who_asks_for_it(slow, capfd):
    begun, let, done = slow
    let.set()
    one = Ahead(may=lambda: True)
    for n_micro_batches in (-1, 8):
        begun.clear()
        one.expect(replace(EIGHT, n_micro_batches=n_micro_batches))
        assert begun.wait(5)
        one._turn.acquire()  # done with it
        one._turn.release()
    assert done == [-1, 8]
    assert capfd.readouterr().err == ""


def test_what_was_prepared_is_what_is_shown():
    seven, six = replace(EIGHT, n_micro_batches=7), replace(EIGHT, n_micro_batches=6)
    ahead._prepare(six)
    assert seven.predict().trace is seven.predict().trace
    assert six.predict().trace.program.n_micro_batches == 6
    assert six.predict().trace is replace(seven, n_micro_batches=6).predict().trace
