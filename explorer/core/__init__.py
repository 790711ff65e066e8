"""The centre: Action, Placement, Program, the rules, Graph, Costs, Trace. Plain, immutable, columnar values."""

from explorer.core.action import (
    COMPUTE_KINDS,
    MESSAGE_KINDS,
    PER_STAGE_KINDS,
    Action,
    Kind,
    Overlap,
)
from explorer.core.costs import Costs, RankShare
from explorer.core.events import Category, Events, MemoryChanges, Origin, Stream
from explorer.core.graph import Graph, check, graph_of
from explorer.core.kernels import kernel
from explorer.core.placement import Placement
from explorer.core.program import Program, RankOrder, Waits
from explorer.core.trace import Trace

__all__ = [
    "COMPUTE_KINDS",
    "MESSAGE_KINDS",
    "PER_STAGE_KINDS",
    "Action",
    "Category",
    "Costs",
    "Events",
    "Graph",
    "Kind",
    "MemoryChanges",
    "Origin",
    "Overlap",
    "Placement",
    "Program",
    "RankOrder",
    "RankShare",
    "Stream",
    "Trace",
    "Waits",
    "check",
    "graph_of",
    "kernel",
]
