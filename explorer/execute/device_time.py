"""Moments on a CUDA device: where an operation began and ended on the device itself, without holding up who tells it.

A moment is an event in the device's stream, and a span lies between two. Their seconds are known once the device has
come there; until then they stand for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import torch

from explorer.execute._torch_ranks import Parcel
from explorer.execute.events import SlotEnd, Updated


class Event(Protocol):
    """As torch.cuda.Event is."""

    def record(self) -> None:
        """Come behind all that the stream has been given."""

    def query(self) -> bool:
        """Whether the device has come to it."""

    def synchronize(self) -> None:
        """Wait until the device has."""

    def elapsed_time(self, other: Any, /) -> float:
        """Milliseconds from this one to the other."""


class DeviceClock:
    """Gives moments on a device, whose seconds are those of the host's clock.

    Args:
        make: an event that can be timed.
        seconds: now, on the host's clock.
    """

    def __init__(self, make: Callable[[], Event], seconds: Callable[[], float] = time.perf_counter) -> None:
        self._make = make
        self._base = make()
        self._base.record()
        self._base.synchronize()
        self._at_base = seconds()  # late by what it takes to hear of it, some microseconds

    def __call__(self) -> Moment:
        """Now, in the order of the current stream."""
        event = self._make()
        event.record()
        return Moment(self, event)

    def seconds_of(self, event: Event) -> float:
        """Of an event, on the host's clock; waits for the device."""
        event.synchronize()
        return self._at_base + 1e-3 * self._base.elapsed_time(event)


class Moment:
    """A place in a device's stream; `float` gives its seconds, and waits for the device if need be."""

    def __init__(self, clock: DeviceClock, event: Event) -> None:
        self._clock, self._event = clock, event

    @property
    def is_over(self) -> bool:
        """Whether the device has come there."""
        return self._event.query()

    def __float__(self) -> float:
        return self._clock.seconds_of(self._event)

    def __sub__(self, begin: Moment) -> Span:
        return Span((begin, self))


class Span:
    """Stretches of a device's stream; `float` gives their seconds together."""

    def __init__(self, *stretches: tuple[Moment, Moment]) -> None:
        self._stretches = stretches

    @property
    def is_over(self) -> bool:
        """Whether the device has come to their ends."""
        return all(end.is_over for _, end in self._stretches)

    def __float__(self) -> float:
        return sum(float(end) - float(begin) for begin, end in self._stretches)

    def __radd__(self, other: Span | float) -> Span:
        before = other._stretches if isinstance(other, Span) else ()
        return Span(*before, *self._stretches)

    def __add__(self, other: Span) -> Span:
        return Span(*self._stretches, *other._stretches)


def cuda_clock(device: torch.device) -> DeviceClock:
    """Of this device."""
    make: Any = torch.cuda.Event
    with torch.cuda.device(device):
        return DeviceClock(lambda: make(enable_timing=True))


def is_settled(row: Any) -> bool:
    """Whether all times of a report's row are known."""
    times: tuple[Any, ...] = ()
    if isinstance(row, Parcel):
        times = row.posted, row.got
    elif isinstance(row, SlotEnd):
        times = (row.ended,)
    elif isinstance(row, Updated):
        times = (row.seconds,)
    return all(time.is_over for time in times if isinstance(time, (Moment, Span)))


def settled(row: Any) -> Any:
    """The same row with its times as numbers; waits for the device if need be."""
    if isinstance(row, Parcel):
        return row._replace(posted=float(row.posted), wanted=float(row.wanted), got=float(row.got))
    if isinstance(row, SlotEnd):
        moments = tuple((float(begin), float(end)) for begin, end in row.moments)
        seconds, begun, ended = float(row.seconds), float(row.begun), float(row.ended)
        return replace(row, moments=moments, seconds=seconds, begun=begun, ended=ended)
    if isinstance(row, Updated):
        return replace(row, seconds=float(row.seconds), begun=float(row.begun))
    return row
