"""Schedules and the simulator together: comparisons at equal work, sweeps, and what a prediction got wrong."""

from explorer.planner.comparison import comparison
from explorer.planner.difference import Difference, explain_difference
from explorer.planner.points import Outcome, Point, search_options, simulated
from explorer.planner.sweep import sweep, sweep_outcomes

__all__ = [
    "Difference",
    "Outcome",
    "Point",
    "comparison",
    "explain_difference",
    "search_options",
    "simulated",
    "sweep",
    "sweep_outcomes",
]
