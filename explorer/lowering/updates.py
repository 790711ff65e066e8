"""The optimizer's updates behind a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.core import Kind, Program
from explorer.errors import ProgramError
from explorer.lowering.columns import rebuilt


def add_updates(program: Program) -> Program:
    """`program` with a U for each stage of a rank, and each copy of one, at the end of that rank's order.

    They take `Costs.optimizer`; a step's makespan ends before them. A stage that has one already keeps it.

    Args:
        program: a training program.

    Raises:
        ProgramError: if nothing runs backward in it.

    Example:
        >>> import explorer as ex
        >>> print(ex.add_updates(ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)))
        rank 0: 0F0 0B0 0U
        rank 1: 1F0 1B0 1U
    """
    if not program.has_backward:
        raise ProgramError(
            f"an optimizer needs gradients; {program.name} runs nothing backward; take a schedule that trains"
        )
    updated = program.kind == Kind.U
    has = set(zip(program.rank_of_action[updated].tolist(), program.stage[updated].tolist(), strict=True))
    pairs = {(int(rank), stage) for route in program.placement.routes for stage, rank in enumerate(route)}
    if not (missing := sorted(pairs - has)):
        return program
    n, more = program.n_actions, np.array(missing, np.int32)
    rank = np.concatenate([program.rank_of_action, more[:, 0]])
    slot = np.concatenate([program.slot_of_action, program.n_slots + np.arange(len(more))])
    order = np.argsort(rank, kind="stable")
    new: dict[str, Any] = {"kind": Kind.U, "stage": more[:, 1], "micro_batch": -1, "segment": 0, "peer": -1}
    columns = {
        name: np.concatenate([getattr(program, name), np.broadcast_to(value, len(more))])[order]
        for name, value in new.items()
    }
    moved = np.empty(len(order), np.int64)
    moved[order] = np.arange(len(order))
    return rebuilt(program, columns, slot=slot[order], rank=rank[order], moved=moved[:n])
