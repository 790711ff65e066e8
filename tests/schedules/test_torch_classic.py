"""Interleaved 1F1B and looped breadth-first, action by action as torch itself writes them down."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import ScheduleError

visualizer = pytest.importorskip("torch.distributed.pipelining._schedule_visualizer")


def _torch_order(name: str, p: int, m: int, v: int) -> list[list[str]]:
    ranks = visualizer.get_schedule_ops(name, p, m, v)
    return [[str(action) for action in rank if action and "REDUCE" not in str(action)] for rank in ranks]


def _order(program: ex.Program) -> list[list[str]]:
    return [[str(action) for action in program.order(rank)] for rank in range(program.n_ranks)]


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize("v", [2, 3])
def test_interleaved_in_torchs_dialect_is_torchs(p: int, v: int) -> None:
    for m in range(1, 14):
        numbers = {"n_ranks": p, "n_micro_batches": m, "n_chunks": v}
        try:
            wanted = _torch_order("Interleaved1F1B", p, m, v)
        except ValueError:
            with pytest.raises(ScheduleError, match="multiple of the rounds") as caught:
                ex.schedule("interleaved_1f1b", **numbers, dialect="torch")
            for legal in caught.value.legal:
                assert _torch_order("Interleaved1F1B", p, legal, v)  # torch takes what the message advises
        else:
            assert _order(ex.schedule("interleaved_1f1b", **numbers, dialect="torch")) == wanted


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize(("v", "m"), [(2, 1), (2, 3), (2, 8), (3, 6), (4, 4)])
def test_looped_bfs_is_torchs(p: int, v: int, m: int) -> None:
    program = ex.schedule("looped_bfs", n_ranks=p, n_micro_batches=m, n_chunks=v)
    assert _order(program) == _torch_order("LoopedBFS", p, m, v)
