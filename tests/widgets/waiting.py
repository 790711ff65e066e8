"""Waiting for what another thread does."""

from __future__ import annotations

import time


def until(condition, what, *, seconds=30.0):
    """Wait for `condition` to hold."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.005)
