"""Seconds and bytes as people read them, where figures look for it: messages of lower rooms need the same words."""

from __future__ import annotations

from explorer.core.units import Unit, bytes_unit, in_digits, time_unit

__all__ = ["Unit", "bytes_unit", "in_digits", "time_unit"]
