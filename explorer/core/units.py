"""Seconds and bytes as people read them: one unit for a whole axis, or for one amount in a sentence."""

from __future__ import annotations

import math
from typing import NamedTuple

_LARGE = 1e12  # from which on a power of ten is easier to read


class Unit(NamedTuple):
    """How the numbers of an axis are shown.

    Attributes:
        name: "ms", "MiB", …; "" where the numbers have no unit.
        factor: what seconds or bytes are multiplied with.
    """

    name: str
    factor: float

    def show(self, value: float) -> str:
        """`value`, in seconds or bytes, with four digits and the unit."""
        return f"{in_digits(value * self.factor)} {self.name}".rstrip()


def in_digits(value: float, digits: int = 4) -> str:
    """`value` with so many digits; one that needs more before its point has them all, and no power of ten."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < _LARGE else text


_TIMES = (Unit("s", 1.0), Unit("ms", 1e3), Unit("µs", 1e6))
_KIB = 1024
_BYTES = (Unit("GiB", 2.0**-30), Unit("MiB", 2.0**-20), Unit("KiB", 2.0**-10))


def time_unit(span: float, clock: str) -> Unit:
    """The unit for times up to `span` seconds; simulated times, whose unit only their user knows, have none."""
    if clock == "simulated":
        return Unit("", 1.0)
    return next((unit for unit in _TIMES if span * unit.factor >= 1), _TIMES[-1])


def bytes_unit(most: float) -> Unit:
    """The binary unit for up to `most` bytes."""
    return next((unit for unit in _BYTES if most * unit.factor >= 1), Unit("bytes", 1.0))


def bytes_in_words(amount: float) -> str:
    """One amount of bytes, in the binary unit that fits it."""
    return bytes_unit(abs(amount)).show(amount)


def bytes_to_type(amount: float) -> str:
    """One amount as a program takes it, whole and not below `amount`, and in words where these are shorter."""
    if not math.isfinite(amount):
        return f"{amount:g}"
    typed = str(math.ceil(amount))
    return f"{typed} ({bytes_in_words(amount)})" if abs(amount) >= _KIB else typed
