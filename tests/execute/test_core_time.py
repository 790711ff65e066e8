"""The clock of operations: what a thread could have worked, and no wait for a core."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from explorer.execute.core_time import _CoreTime, core_time


def test_waits_for_a_core_are_left_out_and_sleep_is_not():
    wall, waited, computed = iter([0.0, 10.0, 15.0]), iter([0.0, 6.0, 6.0]), iter([0.0, 4.0, 4.5])
    clock = _CoreTime(lambda: next(waited), lambda: next(wall), lambda: next(computed))
    assert clock() == 4.0  # of 10 s it computed 4 and waited 6 for a core
    assert clock() == 9.0  # and then slept through most of 5


def test_a_wait_that_is_told_of_late_takes_nothing_from_what_was_computed():
    wall, waited, computed = iter([0.0, 1.0]), iter([0.0, 5.0]), iter([0.0, 0.75])
    clock = _CoreTime(lambda: next(waited), lambda: next(wall), lambda: next(computed))
    assert clock() == 0.75


def test_it_is_wall_time_where_the_system_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[core_time.__module__], "_RUN_QUEUE", str(tmp_path / "absent"))
    with core_time() as clock:
        assert clock is time.perf_counter


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what a thread waited for a core")
def test_busy_neighbours_lengthen_the_wall_and_not_this_clock():
    import os

    spin = "import time; end = time.monotonic() + 20\nwhile time.monotonic() < end: pass"
    neighbours = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        with core_time() as clock:
            wall = 0.0
            while wall < 0.05:  # until some operation was really held up
                began, began_wall, began_computed = clock(), time.perf_counter(), time.thread_time()
                sum(range(2_000_000))
                took, computed = clock() - began, time.thread_time() - began_computed
                wall = time.perf_counter() - began_wall - computed
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    assert took == pytest.approx(computed, rel=0.25)
    assert took < wall + computed
