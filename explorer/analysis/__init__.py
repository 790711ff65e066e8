"""Trace → numbers: phases, memory over time, causes of idle time, critical path, what would make it faster."""

from explorer.analysis.cause import Cause
from explorer.analysis.compare_residuals import paired, residuals
from explorer.analysis.compare_steps import aligned_step, median_step
from explorer.analysis.critical import critical_path, slack
from explorer.analysis.idle import idle_causes, idle_intervals, idle_summary
from explorer.analysis.idle_table import IdleCauses
from explorer.analysis.levels import Levels
from explorer.analysis.levers import sensitivity
from explorer.analysis.memory import in_flight_over_time, memory_over_time, peak_bytes
from explorer.analysis.message_waits import behind_messages
from explorer.analysis.peak import peak_holders
from explorer.analysis.phases import phases
from explorer.analysis.remedies import gains
from explorer.analysis.streaming import items, throughput

__all__ = [
    "Cause",
    "IdleCauses",
    "Levels",
    "aligned_step",
    "behind_messages",
    "critical_path",
    "gains",
    "idle_causes",
    "idle_intervals",
    "idle_summary",
    "in_flight_over_time",
    "items",
    "median_step",
    "memory_over_time",
    "paired",
    "peak_bytes",
    "peak_holders",
    "phases",
    "residuals",
    "sensitivity",
    "slack",
    "throughput",
]
