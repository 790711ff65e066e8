"""Seconds and bytes as people read them: one unit for a whole axis."""

from __future__ import annotations

from typing import NamedTuple


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
        return f"{value * self.factor:.4g} {self.name}".rstrip()


_TIMES = (Unit("s", 1.0), Unit("ms", 1e3), Unit("µs", 1e6))
_BYTES = (Unit("GiB", 2.0**-30), Unit("MiB", 2.0**-20), Unit("KiB", 2.0**-10))


def time_unit(span: float, clock: str) -> Unit:
    """The unit for times up to `span` seconds; simulated times, whose unit only their user knows, have none."""
    if clock == "simulated":
        return Unit("", 1.0)
    return next((unit for unit in _TIMES if span * unit.factor >= 1), _TIMES[-1])


def bytes_unit(most: float) -> Unit:
    """The binary unit for up to `most` bytes."""
    return next((unit for unit in _BYTES if most * unit.factor >= 1), Unit("bytes", 1.0))
