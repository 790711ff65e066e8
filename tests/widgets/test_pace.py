"""How often something that follows a run is made anew, by a clock of the test's own."""

from __future__ import annotations

from explorer.widgets.pace import Pace


def worked(pace, clock, seconds, *, over=True):
    def piece():
        clock[0] += seconds
        return over

    pace.work(piece)


def test_what_is_quick_is_due_a_second_later():
    clock = [0.0]
    pace = Pace(lambda: clock[0])
    assert pace.is_due
    worked(pace, clock, 0.01)
    assert not pace.is_due
    clock[0] += 0.99
    assert not pace.is_due
    clock[0] += 0.02
    assert pace.is_due


def test_what_is_slow_is_due_after_ten_times_what_all_its_pieces_took():
    clock = [0.0]
    pace = Pace(lambda: clock[0])
    worked(pace, clock, 1.0, over=False)
    assert pace.is_due  # the next piece of the same
    worked(pace, clock, 1.0)
    clock[0] += 19.9
    assert not pace.is_due
    clock[0] += 0.2
    assert pace.is_due
    worked(pace, clock, 0.01)
    clock[0] += 1.01
    assert pace.is_due  # what was slow once is not held against it
