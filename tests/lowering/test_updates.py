"""Updates behind a step."""

from __future__ import annotations

import pytest

import explorer as ex
from tests.schedules.test_family import NAMES, legal


def test_each_stage_is_updated_at_the_end_of_its_rank() -> None:
    program = ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=2, n_chunks=2)
    plain, updated = str(program).split("\n"), str(ex.add_updates(program)).split("\n")
    assert updated == [plain[0] + " 0U 2U", plain[1] + " 1U 3U"]


def test_each_copy_of_a_stage_is_updated() -> None:
    program = ex.add_updates(ex.schedule("chimera", n_ranks=2, n_micro_batches=2))
    assert [str(program.order(rank)[-2:]) for rank in (0, 1)] == [str(program.order(0)[-2:])] * 2
    assert (program.kind == ex.Kind.U).sum() == 4


def test_what_is_updated_already_stays() -> None:
    once = ex.add_updates(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2))
    assert ex.add_updates(once) is once


def test_waits_stay_with_their_actions() -> None:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2).with_waits(("1F0", "1F1", 5.0))
    costs = ex.Costs()
    assert ex.simulate(ex.add_updates(program), costs).makespan == ex.simulate(program, costs).makespan


def test_an_inference_program_has_nothing_to_update() -> None:
    with pytest.raises(
        ex.ExplorerError, match="an optimizer needs gradients; forward_only runs nothing backward; take"
    ):
        ex.add_updates(ex.schedule("forward_only", n_ranks=2, n_micro_batches=2))


@pytest.mark.parametrize("name", NAMES)
def test_the_makespan_ends_before_the_optimizer(name: str) -> None:
    program = legal(name, 4, 8, 2)
    if not program.has_backward:
        return
    updated, costs = ex.add_updates(program), ex.Costs(optimizer=100.0)
    for run in (ex.simulate, ex.simulate_events):
        trace = run(updated, costs)
        assert trace.makespan == pytest.approx(run(program, costs).makespan)
        assert trace.events.end.max() > trace.makespan + 99
