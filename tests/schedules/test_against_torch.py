"""The schedules that torch has too, action by action against torch.distributed.pipelining's own generators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import explorer as ex
from explorer.errors import ScheduleError

torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")


def _torch_order(name: str, p: int, m: int, v: int) -> list[list[str]]:
    """What torch's class would run, without making the stages its constructor wants."""
    rounds = max(1, m // p)
    numbers: dict[str, Any] = {"pp_group_size": p, "n_local_stages": v, "num_stages": p * v, "_n_microbatches": m}
    like_it = SimpleNamespace(**numbers, number_of_rounds=rounds, microbatches_per_round=m // rounds)
    rank_order = getattr(torch_schedules, name)._calculate_single_rank_operations
    return [[_as_text(action) for action in rank_order(like_it, rank) if action is not None] for rank in range(p)]


def _as_text(action: Any) -> str:
    parts = action.sub_actions
    return str(action) if parts is None else "(" + ";".join(map(str, parts)) + ")"


def _order(program: ex.Program) -> list[list[str]]:
    return [[str(action) for action in program.order(rank)] for rank in range(program.n_ranks)]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("v", [1, 2, 4])
def test_interleaved_zb_is_torchs_order(p: int, v: int) -> None:
    accepted = 0
    for m in (1, 2, 3, 4, 6, 8, 10, 16):
        try:
            program = ex.schedule("interleaved_zb", n_ranks=p, n_micro_batches=m, n_chunks=v)
        except ScheduleError:
            assert m % (m // p)  # torch refuses the same
            continue
        accepted += 1
        assert _order(ex.check(program)) == _torch_order("ScheduleInterleavedZeroBubble", p, m, v)
    assert accepted >= 4


@pytest.mark.parametrize(("p", "m"), [(1, 2), (2, 4), (2, 8), (3, 7), (4, 8), (5, 12), (8, 20)])
def test_dualpipev_is_torchs_order(p: int, m: int) -> None:
    program = ex.schedule("dualpipev", n_ranks=p, n_micro_batches=m)
    assert _order(program) == _torch_order("ScheduleDualPipeV", p, m, 2)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
def test_zb_v_speaks_torchs_dialect(p: int) -> None:
    for m in (1, 2, 4, 7, 10, 16, 20):  # below 2P−1 torch makes the order for more and thins it out
        program = ex.schedule("zb_v", n_ranks=p, n_micro_batches=m, dialect="torch")
        assert _order(ex.check(program)) == _torch_order("ScheduleZBVZeroBubble", p, m, 2)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_zb_v_takes_as_long_as_torchs_once_the_pipeline_is_full(p: int, m: int) -> None:
    ours, torchs = (
        ex.simulate(ex.schedule("zb_v", n_ranks=p, n_micro_batches=m, dialect=dialect))
        for dialect in ("authors", "torch")
    )
    assert ours.makespan == torchs.makespan
    assert ours.peak_in_flight.max() == torchs.peak_in_flight.max() == 2 * p


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("v", [1, 2, 3])
def test_interleaved_1f1b_speaks_torchs_dialect(p: int, v: int) -> None:
    for m in (1, 2, 4, 8, 10, 12):
        rounds = max(1, m // p)
        if m % rounds:
            continue
        program = ex.schedule("interleaved_1f1b", n_ranks=p, n_micro_batches=m, n_chunks=v, dialect="torch")
        assert _order(ex.check(program)) == _torch_order("ScheduleInterleaved1F1B", p, m, v)
