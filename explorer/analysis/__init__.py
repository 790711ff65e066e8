"""Trace → numbers: phases, memory and micro-batches in flight over time."""

from explorer.analysis.compare_residuals import paired, residuals
from explorer.analysis.compare_steps import aligned_step, median_step
from explorer.analysis.levels import Levels
from explorer.analysis.memory import in_flight_over_time, memory_over_time, peak_bytes
from explorer.analysis.message_waits import behind_messages
from explorer.analysis.peak import peak_holders
from explorer.analysis.phases import phases
from explorer.analysis.streaming import items, throughput

__all__ = [
    "Levels",
    "aligned_step",
    "behind_messages",
    "in_flight_over_time",
    "items",
    "median_step",
    "memory_over_time",
    "paired",
    "peak_bytes",
    "peak_holders",
    "phases",
    "residuals",
    "throughput",
]
