"""Trace → numbers: phases, memory and micro-batches in flight over time."""

from explorer.analysis.levels import Levels
from explorer.analysis.memory import in_flight_over_time, memory_over_time, peak_bytes
from explorer.analysis.message_waits import behind_messages
from explorer.analysis.phases import phases
from explorer.analysis.streaming import items, throughput

__all__ = [
    "Levels",
    "behind_messages",
    "in_flight_over_time",
    "items",
    "memory_over_time",
    "peak_bytes",
    "phases",
    "throughput",
]
