"""The fast sweep: when each slot starts and ends, given how long it takes. The dependency rule is the graph's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Events, Graph, Kind, Origin, RankShare, Stream, kernel
from explorer.core.action import among
from explorer.core.rules import BACKWARD_MESSAGE
from explorer.errors import CostError

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class MessageTimes(NamedTuple):
    """When messages move, all (n_messages,) float64 seconds, by the graph's `messages`.

    Attributes:
        begun: when the first byte moves.
        arrives: when the last has arrived.
        wait: since it was sent, before the first byte moved.
    """

    begun: Floats
    arrives: Floats
    wait: Floats


def check_costs(costs: Costs | None) -> Costs:
    """The costs to simulate with; Costs() if none are given.

    Raises:
        CostError: if it is something else; of a rank's share it says how to divide it.
    """
    if costs is None or isinstance(costs, Costs):
        return costs or Costs()
    advice = "divide it with .for_program(program)" if isinstance(costs, RankShare) else "try Costs(forward=1.0)"
    raise CostError(f"a simulation takes Costs; got {type(costs).__name__}; {advice}", argument="costs")


def slot_times(graph: Graph, slot_seconds: Floats, edge_seconds: Floats) -> tuple[Floats, Floats]:
    """Start and end of each slot, both (n_slots,) seconds: as early as its rank and what it waits for allow."""
    sweep, n = graph.sweep, graph.program.n_slots
    times = np.empty(2 * n)  # the ends by position, then the starts
    lag = _gathered(edge_seconds, sweep.edge, len(sweep.edge))
    times[:n] = slot_seconds.take(graph.order)
    _sweep(sweep.rank, graph.program.n_ranks, sweep.offsets, sweep.source, lag, times)
    del lag
    start, end = np.empty(n), np.empty(n)
    end[graph.order], start[graph.order] = times[:n], times[n:]
    return start, end


def lay_out(
    graph: Graph,
    costs: Costs,
    start: Floats,
    end: Floats,
    *,
    messages: MessageTimes | None = None,
    step: int = 0,
    measured: bool = False,
) -> Events:
    """The events of slots at these times, and of the messages between them.

    Args:
        graph: of the program that ran.
        costs: whose links the messages take.
        start: (n_slots,) seconds.
        end: (n_slots,) seconds.
        messages: when they move; None: each as soon as it is sent, with its links to itself.
        step: number of the training step.
        measured: whether the slots were really run; the messages are modelled even then.

    Returns:
        The actions by rank and start, then the messages that take time, by sender and start.
    """
    program = graph.program
    slot = program.slot_of_action
    idle = start - _free_since(program.rank_offsets, end)
    actions = Events.of(
        step=step,
        rank=program.rank_of_action,
        stage=program.stage,
        micro_batch=program.micro_batch,
        segment=program.segment,
        kind=program.kind,
        slot=slot - program.rank_offsets[program.rank_of_action],
        stream=_stream_of(program.kind),
        start=start[slot],
        end=end[slot],
        wait=np.maximum(idle, 0.0)[slot],
        peer=program.peer,
        origin=Origin.MEASURED if measured else Origin.SIMULATED,
    )
    origin = Origin.MODELLED if measured else Origin.SIMULATED
    return Events.concatenate(actions, _messages(graph, costs, end, messages, step=step, origin=origin))


def _moved(graph: Graph, seconds: Floats, rows: Indices, end: Floats, moved: MessageTimes | None) -> MessageTimes:
    """When the messages at `rows` move; those that nothing hinders, as soon as their slot has ended."""
    if moved is not None:
        return MessageTimes(*(column[rows] for column in moved))
    leaves = end[graph.source_slot[graph.messages[rows]]]
    return MessageTimes(leaves, leaves + seconds[rows], np.zeros(len(rows)))


def _messages(
    graph: Graph, costs: Costs, end: Floats, moved: MessageTimes | None, *, step: int, origin: Origin
) -> Events:
    program, edges = graph.program, graph.dependencies
    seconds = costs.message_seconds(graph)
    timed = np.flatnonzero(seconds > 0)
    begun, arrives, wait = _moved(graph, seconds, timed, end, moved)
    rows = graph.messages[timed]
    source, target = edges.source[rows], edges.target[rows]
    rank = program.rank_of_action[source]
    return Events.of(
        step=step,
        rank=rank,
        stage=program.stage[source],
        micro_batch=program.micro_batch[source],
        segment=program.segment[source],
        kind=np.where(edges.message[rows] == BACKWARD_MESSAGE, Kind.SEND_B, Kind.SEND_F),
        slot=graph.source_slot[rows] - program.rank_offsets[rank],
        stream=Stream.SEND,
        start=begun,
        end=arrives,
        wait=wait,
        bytes=np.rint(costs.bytes_of_messages(graph)[timed]).astype(np.int64),
        peer=program.rank_of_action[target],
        origin=origin,
    )


def _free_since(rank_offsets: npt.NDArray[np.int64], end: Floats) -> Floats:
    """(n_slots,) when each slot's rank ended the slot before, or the beginning."""
    before = np.roll(end, 1)
    before[rank_offsets[:-1][np.diff(rank_offsets) > 0]] = 0.0
    return before


def _stream_of(kind: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    stream = np.zeros(len(kind), np.int8)
    stream[among(kind, Kind.SEND_F, Kind.SEND_B)] = Stream.SEND
    stream[among(kind, Kind.RECV_F, Kind.RECV_B)] = Stream.RECEIVE
    return stream


@kernel
def _gathered(values: Floats, rows: npt.NDArray[np.int32], n: int) -> Floats:
    """`values` at `rows`, without the copy of 32-bit rows that numpy makes."""
    result = np.empty(n)
    for k in range(n):
        result[k] = values[rows[k]]
    return result


@kernel
def _sweep(
    rank: npt.NDArray[np.int32],
    n_ranks: int,
    offsets: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32],
    lag: Floats,
    times: Floats,
) -> None:
    """Turn what each position takes, in the first half of `times`, into when it ends; when it starts comes behind."""
    n = len(rank)
    free = np.zeros(n_ranks)
    for k in range(n):
        time = free[rank[k]]
        for edge in range(offsets[k], offsets[k + 1]):
            time = max(time, times[source[edge]] + lag[edge])  # no branch: which is later cannot be guessed
        times[n + k] = time
        times[k] = time + times[k]
        free[rank[k]] = times[k]
