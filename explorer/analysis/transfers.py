"""What a step's messages took, from its rows or, where it has none, from its costs or from the gaps themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.network import Network
from explorer.core import STREAMED_RULES, Costs, Events, Kind, MessageRule, Origin, Stream, is_message
from explorer.core.rules import BACKWARD_MESSAGE

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class Transfers(NamedTuple):
    """What each of a network's messages took.

    Attributes:
        total: (n_messages,) float64, seconds from the sender's end to the arrival.
        parts: (n_messages, 3) float64, the same as latency, bandwidth and standing behind other messages.
    """

    total: Floats
    parts: Floats


def transfers_of(
    network: Network,
    events: Events,
    start: Floats,
    end: Floats,
    costs: Costs | None,
    rule: MessageRule | None = None,
) -> Transfers:
    """What the messages of a step took.

    A message with a row took what the row says. One without took what the costs say or, where there are none, the
    least seconds that any message on its link left between its two ends.

    Args:
        network: of the program.
        events: of the step.
        start: (n_nodes,) seconds; NaN where a node did not run.
        end: (n_nodes,) seconds.
        costs: of the trace, or None.
        rule: by which its messages meet; None: they are on their way as soon as they are sent.
    """
    source, target = _ends(network)
    model = _modelled(network, costs)
    open_between = start[target] - end[source]
    if is_message(network.program).any():
        shared = costs is not None and costs.links is not None
        met = _since_met(network, events, rule, model.sum(axis=1)) if shared and rule is not None else None
        if met is not None:
            return Transfers(met, _split(met, model, np.ones(len(met), np.bool_)))
        total, seen, exact = _by_action(network, events, model.sum(axis=1), costs is not None and not shared)
    else:
        total, seen, exact = _by_row(network, events, end[source])
        total = np.where(seen, np.fmin(total, np.where(np.isnan(open_between), np.inf, open_between)), 0.0)
    rest = model.sum(axis=1) if costs is not None else _least(network, open_between)
    total = np.maximum(np.where(seen, total, rest), 0.0)
    return Transfers(total, _split(total, model, exact | (costs is not None and not seen.any())))


def _ends(network: Network) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(n_messages,) the nodes between which each message passes."""
    links = network.links
    edges, slot = links.dependencies, network.program.slot_of_action
    node = network.node_of_slot
    return node[slot[edges.source[links.messages]]], node[slot[edges.target[links.messages]]]


def _modelled(network: Network, costs: Costs | None) -> Floats:
    """(n_messages, 2) seconds of latency and of moving bytes that the costs give each message."""
    links = network.links
    found = np.zeros((len(links.messages), 2))
    if costs is not None and len(found):
        found[:, 0] = replace(costs, bandwidth=np.inf).message_seconds(links)
        found[:, 1] = costs.message_seconds(links) - found[:, 0]
    return found


def rows_of_messages(
    network: Network, events: Events, *, stream: Literal[Stream.SEND, Stream.RECEIVE] = Stream.SEND
) -> tuple[Indices, Indices]:
    """The rows of `events` that tell of a message, and which of the network's messages that is.

    Args:
        network: of the program.
        events: of one step.
        stream: which end of the message tells of it.
    """
    links, program = network.links, network.program
    backward = Kind.SEND_B if stream == Stream.SEND else Kind.RECV_B
    rows = np.flatnonzero((events.stream == stream) & (events.slot >= 0) & (events.peer >= 0))
    if not len(rows) or not len(links.messages):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    edges = links.dependencies
    ends = edges.source[links.messages], edges.target[links.messages]
    own, other = ends if stream == Stream.SEND else ends[::-1]
    back = edges.message[links.messages] == BACKWARD_MESSAGE
    key = (program.slot_of_action[own] * program.n_ranks + program.rank_of_action[other]) * 2 + back
    order = np.argsort(key, kind="stable")
    slot = program.rank_offsets[events.rank[rows]] + events.slot[rows]
    wanted = (slot * program.n_ranks + events.peer[rows]) * 2 + (events.kind[rows] == backward)
    found = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
    fits = key[found] == wanted
    return rows[fits], found[fits]


def _by_row(network: Network, events: Events, left: Floats) -> tuple[Floats, Flags, Flags]:
    """Seconds from each sender's end to the arrival, whether a row tells it, and whether that row was worked out."""
    n = len(network.links.messages)
    arrived, exact = np.full(n, np.nan), np.zeros(n, np.bool_)
    row, message = rows_of_messages(network, events)
    arrived[message] = events.end[row]
    exact[message] = events.origin[row] != Origin.MEASURED
    return arrived - left, np.isfinite(arrived - left), exact


def _by_action(network: Network, events: Events, model: Floats, known: bool) -> tuple[Floats, Flags, Flags]:
    """As `_by_row`, where sends and receives are actions: what the costs give, or the row of the receive's length."""
    links, program = network.links, network.program
    n = len(links.messages)
    if known or not n:
        return model, np.ones(n, np.bool_), np.ones(n, np.bool_)
    took = np.full(program.n_slots, np.nan)
    rows = np.flatnonzero((events.stream == Stream.RECEIVE) & (events.slot >= 0))
    slot = program.rank_offsets[events.rank[rows]] + events.slot[rows]
    took[slot] = events.end[rows] - events.start[rows]
    total = took[program.slot_of_action[links.dependencies.target[links.messages]]]
    return total, np.isfinite(total), np.zeros(n, np.bool_)


def _since_met(network: Network, events: Events, rule: MessageRule, without: Floats) -> Floats | None:
    """(n_messages,) seconds from when what each message waits for was posted to its arrival, waits for links included.

    What passes without a send takes what `without`, (n_messages,), says.

    None where the rows are not those of a simulation: one an action, in the program's order.
    """
    program, ends = network.program, network.links.dependencies
    columns = ("kind", "stage", "micro_batch", "segment")
    if len(events) != program.n_actions or (events.origin != Origin.SIMULATED).any():
        return None
    if not all(np.array_equal(getattr(events, name), getattr(program, name)) for name in columns):
        return None
    posted = events.start - events.wait
    if rule in STREAMED_RULES:  # behind the one before on its stream
        line = 2 * events.rank.astype(np.int64) + (rule == "two_streams") * (events.stream == Stream.RECEIVE)
        rows = np.flatnonzero(events.stream != Stream.COMPUTE)
        rows = rows[np.lexsort((events.slot[rows], line[rows]))]
        same = line[rows[1:]] == line[rows[:-1]]
        behind, before = rows[1:][same], rows[:-1][same]
        posted[behind] = np.maximum(posted[behind], events.end[before])
    source, target = (one[network.links.messages] for one in (ends.source, ends.target))
    begun = posted[source] if rule == "buffered" else np.maximum(posted[source], posted[target])
    taken = np.maximum(events.end[source] - begun, 0.0)  # a receive's row may begin behind the arrival
    return np.where(events.stream[source] == Stream.COMPUTE, without, taken)  # a stage's hand-over to its own rank


def _least(network: Network, seconds: Floats) -> Floats:
    """(n_messages,) the least of the `seconds` of all messages from the same rank to the same rank."""
    links, rank = network.links, network.program.rank_of_action
    edges, n_ranks = links.dependencies, network.program.n_ranks
    link = rank[edges.source[links.messages]] * n_ranks + rank[edges.target[links.messages]]
    least = np.full(n_ranks * n_ranks, np.inf)
    np.fmin.at(least, link, seconds)
    return np.asarray(np.where(np.isfinite(least), np.maximum(least, 0.0), 0.0)[link])


def _split(total: Floats, model: Floats, exact: Flags) -> Floats:
    """(n_messages, 3) what of `total` is latency, bandwidth and queue.

    Longer than the costs say is a queue where times were worked out, and latency where they were measured: a clock
    cannot tell what a message stood behind.
    """
    parts = np.zeros((len(total), 3))
    parts[:, 0] = np.minimum(model[:, 0], total)
    parts[:, 1] = np.minimum(model[:, 1], total - parts[:, 0])
    rest = total - parts[:, 0] - parts[:, 1]
    parts[:, 2] = np.where(exact, rest, 0.0)
    parts[:, 0] += rest - parts[:, 2]
    return parts
