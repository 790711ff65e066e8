"""Every full backward as its two halves."""

from __future__ import annotations

import numpy as np

from explorer.core import Kind, Program, graph_of
from explorer.lowering.columns import rebuilt


def split_backward(program: Program) -> Program:
    """`program` with each B cut into I, for the inputs, and W, for the weights, one right after the other.

    The rank's order is otherwise untouched, and so is the makespan where I and W cost what B does, but for
    what is gained by sending the gradient on before W. Of a B within an overlap only I stays there; W, which
    needs it, follows in a slot of its own.

    Args:
        program: with full backwards, or some of them.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.

    Example:
        >>> import explorer as ex
        >>> print(ex.split_backward(ex.schedule("1f1b", n_ranks=2, n_micro_batches=1)))
        rank 0: 0F0 0I0 0W0
        rank 1: 1F0 1I0 1W0
    """
    graph_of(program)
    full = program.kind == Kind.B
    copies = np.where(full, 2, 1)
    rows = np.repeat(np.arange(program.n_actions), copies)
    weights = np.zeros(len(rows), np.bool_)
    weights[1:] = rows[1:] == rows[:-1]
    slot = 2 * program.slot_of_action[rows] + weights  # twice the number leaves room for W in a slot of its own
    order = np.argsort(slot, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    ends = place[np.cumsum(copies) - 1]  # whoever waited for B waits for W, its end
    rows, weights, slot = rows[order], weights[order], slot[order]
    names = ("stage", "micro_batch", "segment", "peer")
    columns = {name: getattr(program, name)[rows] for name in names}
    columns["kind"] = np.where(full[rows], np.where(weights, Kind.W, Kind.I), program.kind[rows])
    return rebuilt(program, columns, slot=slot, rank=program.rank_of_action[rows], moved=ends)
