"""Sends and receives where something travels from one rank to another."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from explorer.core import Graph, Kind, Program, graph_of, is_message, kernel
from explorer.errors import InputError, ProgramError, shown
from explorer.lowering.columns import rebuilt
from explorer.lowering.turns import turns_before

Indices = npt.NDArray[np.int64]
Receives = Literal["before_use", "front_loaded"]


def add_messages(program: Program, *, receives: Receives = "before_use") -> Program:
    """`program` with a SEND slot right behind each action whose result another rank needs, and a RECV slot for it.

    Args:
        program: of computation only.
        receives: where they stand. "before_use": right before the slot that needs them. "front_loaded": as early as
            a sender's turn comes, as torch places them: the ranks take turns, a slot each if what it needs has been
            sent, and each send puts its receive at the end of what the other rank has so far. Gathering, releasing and
            reducing a stage's parameters take turns too.

    Raises:
        InputError: if there is no such place for receives.
        ProgramError: if the program is incomplete, cannot finish, or has messages already.

    Source: the order "front_loaded" is that of torch.distributed.pipelining 2.13, schedules.py, _add_send_recv.

    Example:
        >>> import explorer as ex
        >>> print(ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)))
        rank 0: 0F0 0SEND_F0 0RECV_B0 0B0
        rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
    """
    if receives not in get_args(Receives):
        raise InputError(
            f"receives are placed {' or '.join(get_args(Receives))}; got {shown(receives)}; try 'before_use'",
            argument="receives",
        )
    graph = graph_of(program)
    if is_message(program).any():
        raise ProgramError("messages are added to a program of computation; this one has some; begin without them")
    travelling = _travelling(graph)
    if receives == "before_use":
        after = 4 * program.slot_of_action[travelling.target] + 1
        return _laid_out(program, travelling, after, 4 * np.arange(program.n_slots) + 2)
    return _front_loaded(graph, travelling)


class _Messages(NamedTuple):
    """What travels: from which action to which, in order of the senders."""

    source: Indices
    target: Indices
    back: npt.NDArray[np.bool_]  # a gradient


def _travelling(graph: Graph) -> _Messages:
    program, edges, rows = graph.program, graph.dependencies, graph.messages
    source, target = edges.source[rows], edges.target[rows]
    return _Messages(source, target, program.kind[source] != Kind.F)


def _front_loaded(graph: Graph, messages: _Messages) -> Program:
    program = graph.program
    slot = program.slot_of_action
    offsets = np.searchsorted(slot[messages.source], np.arange(program.n_slots + 1))
    slot_place = np.empty(program.n_slots, np.int64)
    receive_place = np.empty(len(messages.source), np.int64)
    _take_turns(
        program.rank_offsets,
        program.rank_of_slot,
        graph.edge_offsets,
        graph.source_slot,
        offsets,
        slot[messages.target],
        turns_before(program),
        slot_place,
        receive_place,
    )
    return _laid_out(program, messages, receive_place, slot_place)


def _laid_out(program: Program, messages: _Messages, receive_place: Indices, slot_place: Indices) -> Program:
    """Merge the slots, at `slot_place`, each with its sends behind it, and the receives, at `receive_place`.

    Places are compared on one rank only; a send takes the one after its slot's.
    """
    source, target, back = messages
    n, m = program.n_actions, len(source)
    of = np.concatenate([np.arange(n), source, target])
    kind = np.concatenate(
        [
            program.kind,
            np.where(back, Kind.SEND_B, Kind.SEND_F),
            np.where(back, Kind.RECV_B, Kind.RECV_F),
        ]
    )
    place = np.concatenate([slot_place[program.slot_of_action], slot_place[program.slot_of_action[source]] + 1])
    place = np.concatenate([place, receive_place])
    rank = program.rank_of_action[of]
    peer = np.concatenate([program.peer, program.rank_of_action[target], program.rank_of_action[source]])
    order = np.lexsort((place, rank))
    # actions of one slot stay together; each message has a slot of its own
    number = np.concatenate([program.slot_of_action, program.n_slots + np.arange(2 * m)])[order]
    fresh = np.ones(len(order), np.int64)
    fresh[1:] = number[1:] != number[:-1]
    columns = {name: getattr(program, name)[of][order] for name in ("stage", "micro_batch", "segment")}
    moved = np.empty(n + 2 * m, np.int64)
    moved[order] = np.arange(n + 2 * m)
    columns |= {"kind": kind[order], "peer": peer[order]}
    return rebuilt(program, columns, slot=np.cumsum(fresh), rank=rank[order], moved=moved[:n])


@kernel
def _take_turns(
    rank_offsets: Indices,
    rank_of_slot: npt.NDArray[np.int32],
    edge_offsets: Indices,
    source: Indices,
    message_offsets: Indices,
    message_target: Indices,
    pauses: Indices,
    slot_place: Indices,
    receive_place: Indices,
) -> None:
    """Let the ranks take turns, a slot each; write the moment of each slot and of each receive that it causes."""
    n_ranks = len(rank_offsets) - 1
    done = np.zeros(len(rank_of_slot), np.bool_)
    reached = rank_offsets[:-1].copy()
    moment, left = 0, len(rank_of_slot)
    while left:
        for rank in range(n_ranks):
            slot = reached[rank]
            ready = slot < rank_offsets[rank + 1]
            if ready and pauses[slot] > 0:
                pauses[slot] -= 1
                ready = False
            if ready:
                for edge in range(edge_offsets[slot], edge_offsets[slot + 1]):
                    ready = ready and done[source[edge]]
            if ready:
                done[slot] = True
                reached[rank] += 1
                left -= 1
                slot_place[slot] = moment
                for message in range(message_offsets[slot], message_offsets[slot + 1]):
                    receive_place[message] = moment
                moment += 2
