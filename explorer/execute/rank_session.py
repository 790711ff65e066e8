"""The steps of one rank's part of a program."""

from __future__ import annotations

import numpy as np

from explorer.core import Action, Program
from explorer.execute._torch import Engine
from explorer.execute._torch_ranks import Courier, RankEngine, RankStage
from explorer.execute.hooks import Hooks
from explorer.execute.reporter import WARM_UP, Reporter
from explorer.execute.session import Bench, Session
from explorer.execute.tasks import stages_of


class RankBench(Bench):
    """Where no device is waited for: on CUDA the clock's moments tell, later, when it was where."""

    def wait(self) -> None:
        """Nothing to wait for."""


class RankSession(Session):
    """Runs steps of one rank's part of a program, in torch's runtime over its stages alone."""

    def __init__(self, rank: int, program: Program, bench: Bench, reporter: Reporter, courier: Courier) -> None:
        self._rank, self._courier, self._reporter = rank, courier, reporter
        order = np.arange(program.rank_offsets[rank], program.rank_offsets[rank + 1])
        super().__init__(program, order, bench, Hooks([reporter]))

    def _assemble(self, bench: Bench) -> Engine:
        program, loss = self._program, bench.loss
        last = program.n_stages - 1
        stages = [
            RankStage(
                bench.model.stages[stage],
                stage,
                program.n_stages,
                inputs=bench.samples[stage].inputs,
                outputs=bench.samples[stage].outputs,
                watch=self.conductor,
                computes_loss=loss is not None and stage == last,
                courier=self._courier,
            )
            for stage in stages_of(program, self._rank)
        ]
        return RankEngine(
            stages,
            program.n_micro_batches,
            loss,
            trains=program.has_backward,
            orders=_orders(program),
            rank_of_stage=program.placement.routes[0].tolist(),
        )

    def _moment(self) -> str:
        return "warming up" if self._reporter.step == WARM_UP else super()._moment()


def _orders(program: Program) -> dict[int, list[Action]]:
    """Each rank's actions."""
    orders: dict[int, list[Action]] = {rank: [] for rank in range(program.n_ranks)}
    for index, rank in enumerate(program.rank_of_action.tolist()):
        orders[rank].append(program.action(index))
    return orders
