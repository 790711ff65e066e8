"""Who waits for whom, as one table for programs with and without explicit messages: what the walks of this room walk.

A node is a slot of the program or, where messages meet by a rule, also a message's posting, its way and its end. Nodes
are numbered so that each comes after all it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.classes import Classes, classes_of
from explorer.core import Graph, MessageRule, Program, graph_of, is_message, meetings_of
from explorer.core.rules import LOCAL, Dependencies

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


class Role(IntEnum):
    """Why a node waits for another."""

    ORDER = 0  # the program's order on one rank
    DATA = 1  # what was made on the same rank
    MESSAGE = 2  # what comes from another rank
    LIMIT = 3  # room between stages, or a wait that the program adds


class Edges(NamedTuple):
    """Which node waits for which, by target.

    Attributes:
        offsets: (n_nodes + 1,) int32, where each node's edges begin.
        source: (n_edges,) int32, the node waited for.
        early: (n_edges,) bool, whether that need only have begun.
        role: (n_edges,) int8, a Role.
        message: (n_edges,) int32, which of `links.messages` is on its way meanwhile; −1 = none.
        lag: (n_edges,) float64, seconds that pass besides.
    """

    offsets: Ints
    source: Ints
    early: Flags
    role: npt.NDArray[np.int8]
    message: Ints
    lag: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """The nodes of a program and what they wait for.

    Attributes:
        links: the graph whose `messages` and `dependencies` the edges speak of.
        rank: (n_nodes,) int32; −1 = of no rank.
        slot: (n_nodes,) int32, the slot that a node computes; −1 = it computes nothing.
        node_of_slot: (n_slots,) int32, where each slot begins.
        edges: what the nodes wait for.
        carries: (n_nodes,) int32, the message whose way a node is; −1 = none.
        ends_message: (n_nodes,) bool, whether a rank stands here until a message is through.
    """

    links: Graph
    rank: Ints
    slot: Ints
    node_of_slot: Ints
    edges: Edges
    carries: Ints
    ends_message: Flags

    @property
    def program(self) -> Program:
        """What it was made of."""
        return self.links.program

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.rank)

    @cached_property
    def classes(self) -> Classes:
        """The nodes sorted by what they compute."""
        return classes_of(self.program, self.slot)

    @cached_property
    def action(self) -> Ints:
        """(n_nodes,) the first action that each node computes; −1 = none."""
        first = self.program.slot_offsets[np.maximum(self.slot, 0)]
        return np.where(self.slot >= 0, first, -1).astype(np.int32)

    @cached_property
    def place(self) -> Ints:
        """(n_edges,) where among all ends, and then all starts, what each edge waits for is found."""
        return self.edges.source + np.where(self.edges.early, self.n_nodes, 0).astype(np.int32)

    @cached_property
    def edge_of_message(self) -> Ints:
        """(n_messages,) the edge along which each message passes; −1 where a node carries it."""
        found = np.full(len(self.links.messages), -1, np.int32)
        along = np.flatnonzero(self.edges.message >= 0)
        found[self.edges.message[along]] = along
        return found

    @cached_property
    def target(self) -> Ints:
        """(n_edges,) the node that waits."""
        return np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.edges.offsets))


def network_of(program: Program, rule: MessageRule | None = None) -> Network | None:
    """The network of `program`, kept; None where its messages wait for each other in a circle under `rule`.

    Args:
        program: complete.
        rule: how its messages meet; None: they are on their way as soon as they are sent, and no rank stands at one.
    """
    return _plain(program) if rule is None else _meeting(program, rule)


@lru_cache(maxsize=8)
def _plain(program: Program) -> Network:
    graph = graph_of(program)
    sweep, order, n = graph.sweep, graph.order, program.n_slots
    node_of_slot = _positions(order, n)
    later = np.ones(n, np.bool_)  # whether a slot has one before it on its rank
    later[program.rank_offsets[:-1][np.diff(program.rank_offsets) > 0]] = False
    here = np.flatnonzero(later[order])
    target = np.concatenate([here, np.repeat(np.arange(n), np.diff(sweep.offsets))])
    source = np.concatenate([node_of_slot[order[here] - 1], sweep.source])
    row = np.concatenate([np.full(len(here), -1, np.int64), sweep.edge])
    computes = ~is_message(program)[program.slot_offsets[:-1]]
    return Network(
        links=graph,
        rank=sweep.rank,
        slot=np.where(computes[order], order, -1).astype(np.int32),
        node_of_slot=node_of_slot,
        edges=_edges(graph, n, target, source % max(n, 1), source >= n, row),
        carries=np.full(n, -1, np.int32),
        ends_message=np.zeros(n, np.bool_),
    )


@lru_cache(maxsize=8)
def _meeting(program: Program, rule: MessageRule) -> Network | None:
    meetings = meetings_of(program, rule)
    if meetings.hangs:
        return None
    n, order, n_slots = meetings.n_steps, meetings.order, program.n_slots
    position = _positions(order, n)
    rank = np.full(n, -1, np.int32)
    rank[meetings.finish] = rank[meetings.begin] = program.rank_of_slot
    slot = np.full(n, -1, np.int32)
    computes = ~is_message(program)[program.slot_offsets[:-1]]
    slot[:n_slots][computes] = np.flatnonzero(computes)
    ends = np.zeros(n, np.bool_)
    ends[meetings.finish[~computes]] = True
    carries = np.full(n, -1, np.int32)
    by_row = _message_of_row(meetings.links)
    carries[meetings.transfer] = by_row[len(by_row) - len(meetings.transfer) :]
    found = meetings.edges
    target = position[np.repeat(np.arange(n), np.diff(meetings.edge_offsets))]
    return Network(
        links=meetings.links,
        rank=rank[order],
        slot=slot[order],
        node_of_slot=position[meetings.begin],
        edges=_edges(meetings.links, n, target, position[found.source], found.from_start, found.row),
        carries=carries[order],
        ends_message=ends[order],
    )


def _positions(order: npt.NDArray[np.int64], n: int) -> Ints:
    position = np.empty(n, np.int32)
    position[order] = np.arange(n, dtype=np.int32)
    return position


def _edges(
    graph: Graph,
    n_nodes: int,
    target: npt.NDArray[np.integer[Any]],
    source: npt.NDArray[np.integer[Any]],
    early: Flags,
    row: npt.NDArray[np.int64],
) -> Edges:
    """The edges by target; `row` is that of the graph's dependencies, −1 where an edge stands for none of them."""
    sorting = np.argsort(target, kind="stable")
    source, early, row = source[sorting], early[sorting], row[sorting]
    found = graph.dependencies
    known = row >= 0
    message = np.where(known, _message_of_row(graph)[row], -1) if len(found.source) else np.full(len(row), -1)
    role = np.full(len(row), Role.ORDER, np.int8)
    role[known] = _roles(graph.program, found)[row[known]]
    lag = np.zeros(len(row))
    lag[known] = found.lag[row[known]]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=n_nodes))]).astype(np.int32)
    return Edges(offsets, source.astype(np.int32), early, role, message.astype(np.int32), lag)


def _message_of_row(graph: Graph) -> Ints:
    """(n_dependencies,) which of the graph's messages each dependency is; −1 = none."""
    found = np.full(len(graph.dependencies.source), -1, np.int32)
    found[graph.messages] = np.arange(len(graph.messages), dtype=np.int32)
    return found


def _roles(program: Program, found: Dependencies) -> npt.NDArray[np.int8]:
    """(n_dependencies,) the Role of each."""
    rank = program.rank_of_action
    away = (found.message != LOCAL) & (rank[found.source] != rank[found.target])
    role = np.where(away, Role.MESSAGE, Role.DATA)
    limit = found.from_start.copy()
    if program.waits is not None:
        n = program.n_actions
        added = program.waits.after * n + program.waits.before
        limit |= np.isin(found.source.astype(np.int64) * n + found.target, added) & (found.message == LOCAL)
    return np.where(limit, Role.LIMIT, role).astype(np.int8)
