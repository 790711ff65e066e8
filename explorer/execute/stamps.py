"""Clocks whose readings cost next to nothing: the host's, or events on a CUDA stream that are read later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

Stamp = Any


class Clock(Protocol):
    """Stamps now, nanoseconds later."""

    def now(self) -> Stamp:
        """A stamp of this moment."""

    def ready(self, stamp: Stamp) -> bool:
        """Whether the moment of a stamp is known."""

    def nanoseconds(self, stamps: Sequence[Stamp]) -> list[int]:
        """When each was on the host's monotonic clock, given in the order of their making."""


class HostClock:
    """The host's monotonic clock, which all its processes share."""

    def now(self) -> int:
        """Nanoseconds."""
        return time.perf_counter_ns()

    def ready(self, stamp: Stamp) -> bool:
        """Always."""
        return True

    def nanoseconds(self, stamps: Sequence[int]) -> list[int]:
        """As they are."""
        return list(stamps)


class CudaClock:
    """Events on the current stream: when the device came to them, not when the host asked for them.

    They are counted from an event at which device and host are brought together once. What torch gives between two
    events is a 32-bit number of milliseconds, so each is counted from the one before.
    """

    def __init__(self) -> None:
        torch.cuda.synchronize()
        self._last = self.now()
        self._last.synchronize()
        self._nanoseconds = float(time.perf_counter_ns())

    def now(self) -> Any:
        """An event."""
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def ready(self, stamp: Any) -> bool:
        """Whether the device has come to it."""
        return bool(stamp.query())

    def nanoseconds(self, stamps: Sequence[Any]) -> list[int]:
        """When the device came to each; waits until it has."""
        found = []
        for event in stamps:
            event.synchronize()
            self._nanoseconds += self._last.elapsed_time(event) * 1e6
            self._last = event
            found.append(round(self._nanoseconds))
        return found


def clock_of(device: torch.device) -> Clock:
    """The clock by which work on `device` is timed."""
    return CudaClock() if device.type == "cuda" else HostClock()


def clock_name() -> str:
    """Which clock this process reads: one word for all processes that share it.

    A machine's monotonic clock begins anew with each start of its kernel, and in each time namespace.
    """
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str(Path("/proc/self/ns/time").readlink())
    except OSError:
        import uuid

        return f"node {uuid.getnode():x}"  # no Linux: by the network card
    return f"{started} {namespace}"
