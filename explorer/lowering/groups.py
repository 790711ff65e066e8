"""Messages posted together in one slot, and apart again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import Program, is_message, message_pairs
from explorer.errors import InputError
from explorer.lowering.columns import reordered

Indices = npt.NDArray[np.int64]


def group_messages(program: Program) -> Program:
    """`program` with each run of messages between two computations as one slot, posted together.

    So do frameworks that post a send and a receive as one batch.

    Raises:
        InputError: if it is no Program.

    Example:
        >>> import explorer as ex
        >>> program = ex.add_messages(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
        >>> print(ex.group_messages(program))
        rank 0: 0F0 0SEND_F0 0F1 (0SEND_F1;0RECV_B0) 0B0 0RECV_B1 0B1
        rank 1: 1RECV_F0 1F0 1B0 (1SEND_B0;1RECV_F1) 1F1 1B1 1SEND_B1
    """
    check_program(program)
    message, slot, rank = is_message(program), program.slot_of_action, program.rank_of_action
    together = np.zeros(program.n_actions, np.bool_)
    together[1:] = (slot[1:] == slot[:-1]) | (message[1:] & message[:-1] & (rank[1:] == rank[:-1]))
    return reordered(program, np.arange(program.n_actions), np.cumsum(~together))


def one_group_per_peer(program: Program) -> Program:
    """`program` with each slot of messages cut into one for each rank at their other end, lowest first."""
    check_program(program)
    message, slot = is_message(program), program.slot_of_action
    peer = np.where(message, peers(program), -1)
    rows = np.lexsort((peer, slot))
    apart = np.ones(program.n_actions, np.bool_)
    apart[1:] = (slot[rows][1:] != slot[rows][:-1]) | (peer[rows][1:] != peer[rows][:-1])
    return reordered(program, rows, np.cumsum(apart))


def check_program(program: Program) -> None:
    """Refuse what is no Program.

    Raises:
        InputError: saying what it is.
    """
    if not isinstance(program, Program):
        raise InputError(f"this needs a Program; got {type(program).__name__}", argument="program")


def peers(program: Program) -> Indices:
    """(n_actions,) the rank at the other end of each message; −1 for computation."""
    send, receive = message_pairs(program)
    found = np.full(program.n_actions, -1, np.int64)
    found[send], found[receive] = program.rank_of_action[receive], program.rank_of_action[send]
    return found
