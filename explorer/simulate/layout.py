"""The fast sweep: when each slot starts and ends, given how long it takes. The dependency rule is the graph's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Category, Costs, Events, Graph, Kind, MemoryChanges, Origin, RankShare, Stream, kernel
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


def modelled_memory(graph: Graph, costs: Costs, start: Floats, end: Floats, *, step: int = 0) -> MemoryChanges:
    """The memory that `costs` say is held: parameters and gradients throughout, activations from F to B or W.

    Nothing is returned where the costs name no bytes.
    """
    program = graph.program
    activation = costs.bytes_of_stage("activation_bytes", program)
    rebuilt = costs.bytes_of_stage("recompute_bytes", program)
    parameter = costs.bytes_of_stage("parameter_bytes", program)[:, 0, 0]
    tables = []
    if activation.any():
        tables.append(_activations(graph, activation, start, end, step, (Kind.F,)))
    if rebuilt.any() and program.has_backward:
        by = (Kind.R,) if (program.kind == Kind.R).any() else (Kind.B, Kind.I)
        tables.append(_activations(graph, rebuilt, start, end, step, by))
    if parameter.any():
        tables.extend(_weights(graph, parameter, float(start.min(initial=0.0)), step))
    return MemoryChanges.concatenate(*tables) if tables else MemoryChanges.of(step=())


def _activations(
    graph: Graph, size: Floats, start: Floats, end: Floats, step: int, by: tuple[Kind, ...]
) -> MemoryChanges:
    """What actions of the kinds `by` take when they start, until the backward has ended."""
    program = graph.program
    slot = program.slot_of_action
    trains = program.has_backward
    taken = among(program.kind, *by)
    freed = among(program.kind, Kind.B, Kind.W) if trains else taken
    rows = np.concatenate([np.flatnonzero(taken), np.flatnonzero(freed)])
    sign = np.repeat([1, -1], [taken.sum(), freed.sum()])
    time = np.concatenate([start[slot[taken]], end[slot[freed]]])
    # each segment of a cut sequence keeps its part
    part = size[program.stage[rows], program.micro_batch[rows], program.segment[rows]] / program.n_segments
    return MemoryChanges.of(
        step=step,
        time=time,
        rank=program.rank_of_action[rows],
        category=Category.ACTIVATIONS,
        stage=program.stage[rows],
        micro_batch=program.micro_batch[rows],
        delta=sign * np.rint(part).astype(np.int64),
        origin=Origin.SIMULATED,
    )


def _weights(graph: Graph, size: Floats, time: float, step: int) -> list[MemoryChanges]:
    """Parameters in every version, and gradients in training, of every copy of every stage, from the beginning."""
    placement = graph.program.placement
    pairs = {(int(rank), stage) for route in placement.routes for stage, rank in enumerate(route)}
    rank, stage = np.array(sorted(pairs)).T
    kept = graph.program.weight_versions
    held = {Category.PARAMETERS: 1 if kept is None else kept[rank]}
    if graph.program.has_backward:
        held[Category.GRADIENTS] = 1
    return [
        MemoryChanges.of(
            step=step,
            time=time,
            rank=rank,
            category=category,
            stage=stage,
            delta=np.rint(size[stage]).astype(np.int64) * versions,
            origin=Origin.SIMULATED,
        )
        for category, versions in held.items()
    ]


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
