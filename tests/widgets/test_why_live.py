"""Why ranks wait while a run goes on: what is told of as much as has run, when, and by whom."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace

import pytest
from torch import nn

import explorer as ex
from explorer.errors import ProgramError
from explorer.widgets import why_live
from explorer.widgets.basis import measured_share
from explorer.widgets.why import why_page, why_pieces
from explorer.widgets.why_live import MOST_LIVE, LiveWhy
from tests.widgets.waiting import until


def first(trace, n):
    """The trace after the first `n` of its events, in order of their ends."""
    rows = trace.events.end.argsort(kind="stable")[:n]
    return replace(trace, events=trace.events.take(rows))


def steps(trace, n):
    """`n` of it, one behind the other."""
    events = [
        replace(
            trace.events,
            step=trace.events.step + step,
            start=trace.events.start + step * trace.makespan,
            end=trace.events.end + step * trace.makespan,
        )
        for step in range(n)
    ]
    return replace(trace, events=ex.Events.concatenate(*events))


@pytest.fixture
def trace():
    return ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8), ex.Costs(forward=1.0, backward=2.0))


class Clock:
    """Seconds that pass when told to, and a little with each look."""

    def __init__(self, each=0.0):
        self.now, self.each = 0.0, each

    def __call__(self):
        self.now += self.each
        return self.now


# ── the page of what is not over ─────────────────────────────────────────────────────────────────────────────────


def test_of_a_step_that_goes_on_it_says_so_and_promises_nothing(trace):
    page = why_page(first(trace, 4))
    assert "Ranks wait" in page
    assert "This is what has run of step 1, which is not over" in page
    assert "What would help" not in page
    assert "What would help" in why_page(trace)


def test_of_several_steps_it_is_of_those_that_are_over(trace):
    three = steps(trace, 3)
    assert "Ranks wait 27.3%" in why_page(three)  # (P − 1) / (M + P − 1)
    assert "This is step 2 of 3." in why_page(three)
    page = why_page(first(three, 2 * 64 + 5))
    assert "Ranks wait 27.3%" in page
    assert "This is step 2 of 2 that are over." in page
    assert "What would help" in page
    assert "This is step 1, the only one that is over." in why_page(first(three, 64 + 5))


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_v", "hanayo", "looped_bfs"])
def test_whatever_has_run_can_be_told_of(name):
    whole = ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=8), ex.Costs(latency=0.1))
    for n in (1, 2, 7, 30, len(whole.events) - 1):
        assert "not over" in why_page(first(whole, n)) or n > 30


# ── when it is made ──────────────────────────────────────────────────────────────────────────────────────────────


def test_each_look_does_one_piece_and_the_page_comes_with_the_last(trace):
    n_pieces = sum(1 for _ in why_pieces(trace))
    live = LiveWhy(Clock())
    given = [live.work(trace) for _ in range(n_pieces)]
    assert n_pieces > 3
    assert not any(given[:-1])
    assert given[-1] == why_page(trace)


def test_a_page_is_of_one_moment_and_the_next_a_second_later(trace):
    clock, later = Clock(), steps(trace, 2)
    live = LiveWhy(clock)
    pages = []
    for moment in (trace, *[later] * 40):
        clock.now += 0.1
        pages.append(live.work(moment))
    when = [n for n, page in enumerate(pages) if page]
    assert pages[when[0]] == why_page(trace)
    assert pages[when[1]] == why_page(later)
    assert when[1] - when[0] >= 10


def test_it_takes_a_tenth_of_the_time_at_most(trace):
    clock = Clock(each=1.0)  # each piece seems to take a second
    live = LiveWhy(clock)
    while not live.work(trace):
        pass
    taken = clock.now
    while not live.work(trace):  # asked without end
        pass
    assert clock.now - taken >= 10 * sum(1 for _ in why_pieces(trace))


def test_a_step_of_very_many_actions_waits_for_the_end(trace):
    many = ex.schedule("1f1b", n_ranks=8, n_micro_batches=1024)
    assert many.n_actions > MOST_LIVE
    assert "16,384 actions is explained once it is over" in LiveWhy(Clock()).work(replace(trace, program=many))


def test_what_cannot_be_told_of_is_said_instead(trace, monkeypatch):
    def refuse(trace):
        raise ProgramError("no <b>such</b> thing")
        yield

    monkeypatch.setattr(why_live, "why_pieces", refuse)
    assert "no &lt;b&gt;such&lt;/b&gt; thing" in LiveWhy(Clock()).work(trace)


# ── in the app ───────────────────────────────────────────────────────────────────────────────────────────────────


class Slow(nn.Linear):
    def forward(self, x):
        time.sleep(0.004)
        return super().forward(x)


def test_why_follows_a_run_that_streams_and_ends_with_the_whole_of_it(open_app, monkeypatch):
    makers = set()
    pieces = why_live.why_pieces

    def watched(trace):
        makers.add(threading.current_thread().name)
        yield from pieces(trace)

    monkeypatch.setattr(why_live, "why_pieces", watched)
    app = open_app(layer=Slow, n_steps=8)
    app.places.choice.value = "why"
    until(lambda: "Ranks wait 27.3%" in app.places.page, "the prediction's causes")
    seen = []
    app.places._page.observe(lambda change: seen.append(change["new"]), "value")
    app.panel.run.click()
    until(lambda: app.panel.stop.disabled, "the end of the run", seconds=90)
    until(lambda: re.search(r"This is step \d+ of 8\.", app.places.page), "the causes of the whole run")
    assert any("not over" in page or "over." in page for page in seen)
    assert makers == {"explorer-runner"}  # no thread beside the operations that are timed


def test_why_opened_while_a_run_streams_is_of_the_run(open_app):
    app = open_app(layer=Slow, n_steps=200)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.01, "the run to get under way")
    app.places.choice.value = "why"
    until(lambda: "not over" in app.places.page or "over." in app.places.page, "the run's causes")
    app.panel.stop.click()
    until(lambda: app.panel.status.startswith("Stopped"), "the end")
    shown = app._picture._drawn.trace  # what was measured stays in the picture, and is told of
    share = measured_share(*app.places._of)
    until(lambda: app.places.page == why_page(shown, share), "the causes of what was measured")


def test_a_run_that_fails_before_it_measures_leaves_the_predictions_causes(open_app):
    app = open_app(n_items=30)
    app.places.choice.value = "why"
    app.panel.run.click()
    until(lambda: app.panel.status.startswith("The run failed"), "the refusal")
    until(lambda: "Ranks wait 27.3%" in app.places.page, "the prediction's causes")


def test_memory_opened_while_a_run_streams_grows_with_it(open_app):
    app = open_app(layer=Slow, n_steps=200)
    app.panel.run.click()
    until(lambda: app._shown is not None and app._shown.recorder.progress > 0.01, "the run to get under way")
    app.places.choice.value = "memory"
    until(lambda: app.places.memory._info is not None, "the memory of what has run")
    first = app.places.memory._info.time[-1]
    until(lambda: app.places.memory._info.time[-1] > 1.5 * first, "the memory of what ran since")
    assert not app.panel.stop.disabled
