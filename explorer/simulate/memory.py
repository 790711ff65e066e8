"""The memory that costs say is held, and when."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Category, Costs, Graph, Kind, MemoryChanges, Origin, Program
from explorer.core.action import among
from explorer.core.rules import BACKWARD_MESSAGE

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_ENDS = (Kind.B, Kind.W)  # with which a backward is over


def modelled_memory(graph: Graph, costs: Costs, start: Floats, end: Floats, *, step: int = 0) -> MemoryChanges:
    """The memory that `costs` say is held.

    parameters, gradients, optimizer   throughout, by each rank that has a copy of the stage
    activations                        from the start of F to the end of B or, after I, of W
    kept between I and W               where `weight_gradient_bytes` is given: from the end of I, where the activations
                                       go, to the end of W
    receive buffers                    from when a message is sent to the start of the F, or the end of the B or I, that
                                       needs it; only where other bytes are known

    Nothing is returned where the costs name no bytes.

    Args:
        graph: of the program that ran.
        costs: whose bytes.
        start: (n_slots,) seconds.
        end: (n_slots,) seconds.
        step: number of the training step.

    Source: M_B and M_W, what is kept before I and between I and W: Qi et al. 2023, Zero Bubble Pipeline Parallelism,
        arXiv:2401.10241, section 2.2 and table 1.
    """
    program = graph.program
    activation = costs.bytes_of_stage("activation_bytes", program)
    rebuilt = costs.bytes_of_stage("recompute_bytes", program)
    tables = _weights(graph, costs, float(start.min(initial=0.0)), step)
    if activation.any():
        tables.extend(_activations(graph, costs, activation, start, end, step))
    if rebuilt.any() and program.has_backward:
        by = (Kind.R,) if (program.kind == Kind.R).any() else (Kind.B, Kind.I)
        tables.append(_held(graph, rebuilt, (_rows(program, *by), start), (_rows(program, *_ENDS), end), step=step))
    if tables:
        tables.extend(_buffers(graph, costs, start, end, step))
    return MemoryChanges.concatenate(*tables) if tables else MemoryChanges.of(step=())


def _activations(
    graph: Graph, costs: Costs, size: Floats, start: Floats, end: Floats, step: int
) -> list[MemoryChanges]:
    """What F takes until backward gives it back, at once or, where it is cut and a size for that is given, in two."""
    program = graph.program
    forwards = _rows(program, Kind.F)
    if not program.has_backward:
        return [_held(graph, size, (forwards, start), (forwards, end), step=step)]
    if costs.weight_gradient_bytes is None or not program.splits_backward:
        return [_held(graph, size, (forwards, start), (_rows(program, *_ENDS), end), step=step)]
    kept = costs.bytes_of_stage("weight_gradient_bytes", program)
    inputs, weights = _rows(program, Kind.I), _rows(program, Kind.W)
    freed = np.concatenate([_rows(program, Kind.B), inputs])
    between = Category.WEIGHT_GRADIENTS
    return [
        _held(graph, size, (forwards, start), (freed, end), step=step),
        _held(graph, kept, (inputs, end), (weights, end), step=step, category=between),
    ]


def _held(
    graph: Graph,
    size: Floats,
    taken: tuple[Indices, Floats],
    freed: tuple[Indices, Floats],
    *,
    step: int,
    category: Category = Category.ACTIVATIONS,
) -> MemoryChanges:
    """What some actions take and others give back, each at the time of its slot."""
    program = graph.program
    rows = np.concatenate([taken[0], freed[0]])
    sign = np.repeat([1, -1], [len(taken[0]), len(freed[0])])
    slot = program.slot_of_action
    # each segment of a cut sequence keeps its part
    part = size[program.stage[rows], program.micro_batch[rows], program.segment[rows]] / program.n_segments
    return MemoryChanges.of(
        step=step,
        time=np.concatenate([time[slot[actions]] for actions, time in (taken, freed)]),
        rank=program.rank_of_action[rows],
        category=category,
        stage=program.stage[rows],
        micro_batch=program.micro_batch[rows],
        delta=sign * np.rint(part).astype(np.int64),
        origin=Origin.SIMULATED,
    )


def _rows(program: Program, *kinds: Kind) -> Indices:
    return np.flatnonzero(among(program.kind, *kinds))


def _weights(graph: Graph, costs: Costs, time: float, step: int) -> list[MemoryChanges]:
    """Parameters in every version, and in training gradients and optimizer, of every copy of every stage."""
    program = graph.program
    pairs = {(int(rank), stage) for route in program.placement.routes for stage, rank in enumerate(route)}
    rank, stage = np.array(sorted(pairs)).T
    kept = 1 if program.weight_versions is None else program.weight_versions[rank]
    held = [(Category.PARAMETERS, "parameter_bytes", kept)]
    if program.has_backward:
        held += [(Category.GRADIENTS, "parameter_bytes", 1), (Category.OPTIMIZER, "optimizer_bytes", 1)]
    tables = []
    for category, name, copies in held:
        size = np.rint(costs.bytes_of_stage(name, program)[stage, 0, 0]).astype(np.int64) * copies
        if size.any():
            columns = {"step": step, "time": time, "rank": rank, "category": category, "stage": stage}
            tables.append(MemoryChanges.of(**columns, micro_batch=-1, delta=size, origin=Origin.SIMULATED))
    return tables


def _buffers(graph: Graph, costs: Costs, start: Floats, end: Floats, step: int) -> list[MemoryChanges]:
    """Where messages lie until they are used: an activation until it is kept as one, a gradient until it is."""
    program, edges, rows = graph.program, graph.dependencies, graph.messages
    size = np.rint(costs.bytes_of_messages(graph)).astype(np.int64)
    if not size.any():
        return []
    target, back = edges.target[rows], edges.message[rows] == BACKWARD_MESSAGE
    stage, micro_batch = program.stage[target], program.micro_batch[target]
    users = _users(program)[back.astype(np.int64), stage, micro_batch, program.segment[target]]
    taken = end[graph.source_slot[rows]]
    freed = np.maximum(np.where(back, end[users], start[users]), taken)
    n = len(rows)
    return [
        MemoryChanges.of(
            step=step,
            time=np.concatenate([taken, freed]),
            rank=np.tile(program.rank_of_action[target], 2),
            category=Category.RECEIVE_BUFFERS,
            stage=np.tile(stage, 2),
            micro_batch=np.tile(micro_batch, 2),
            delta=np.tile(size, 2) * np.repeat([1, -1], n),
            origin=Origin.SIMULATED,
        )
    ]


def _users(program: Program) -> Indices:
    """(2, n_stages, n_micro_batches, n_segments) the slot of each F, and of each B or I."""
    slots = np.zeros((2, program.n_stages, program.n_micro_batches, program.n_segments), np.int64)
    for back, kinds in enumerate(((Kind.F,), (Kind.B, Kind.I))):
        rows = _rows(program, *kinds)
        slots[back, program.stage[rows], program.micro_batch[rows], program.segment[rows]] = program.slot_of_action[
            rows
        ]
    return slots
