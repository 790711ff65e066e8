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
from explorer.core.hangs import RULE_WORDS, Link, chain_of, find_circle, refuse_hang, told
from explorer.core.kernels import kernel, part
from explorer.core.links import LinkSharing, node_links, ways
from explorer.core.marks import Mark
from explorer.core.meetings import MESSAGE_RULES, STREAMED_RULES, Meetings, MessageRule, check_rule, meetings_of
from explorer.core.pairs import Pairs, is_message, message_pairs
from explorer.core.placement import Placement
from explorer.core.program import Program, RankOrder, Waits
from explorer.core.trace import Trace

__all__ = [
    "COMPUTE_KINDS",
    "MESSAGE_KINDS",
    "MESSAGE_RULES",
    "PER_STAGE_KINDS",
    "RULE_WORDS",
    "STREAMED_RULES",
    "Action",
    "Category",
    "Costs",
    "Events",
    "Graph",
    "Kind",
    "Link",
    "LinkSharing",
    "Mark",
    "Meetings",
    "MemoryChanges",
    "MessageRule",
    "Origin",
    "Overlap",
    "Pairs",
    "Placement",
    "Program",
    "RankOrder",
    "RankShare",
    "Stream",
    "Trace",
    "Waits",
    "chain_of",
    "check",
    "check_rule",
    "find_circle",
    "graph_of",
    "is_message",
    "kernel",
    "meetings_of",
    "message_pairs",
    "node_links",
    "part",
    "refuse_hang",
    "told",
    "ways",
]
