"""The steps of one rank's part of a program."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import numpy as np

from explorer.core import Action, Kind, Program
from explorer.execute._torch import Engine
from explorer.execute._torch_ranks import Courier, RankEngine, RankStage
from explorer.execute.faults import Fault
from explorer.execute.hooks import Hooks
from explorer.execute.injection import Injection
from explorer.execute.reporter import WARM_UP, Reporter
from explorer.execute.session import Bench, Session
from explorer.execute.tasks import stages_of


class RankBench(Bench):
    """Where no device is waited for: on CUDA the clock's moments tell, later, when it was where."""

    def wait(self) -> None:
        """Nothing to wait for."""


class RankSession(Session):
    """Runs steps of one rank's part of a program, in torch's runtime over its stages alone."""

    def __init__(
        self,
        rank: int,
        program: Program,
        bench: Bench,
        reporter: Reporter,
        courier: Courier,
        *,
        faults: Sequence[Fault] = (),
    ) -> None:
        self._rank, self._courier, self._reporter = rank, courier, reporter
        order = np.arange(program.rank_offsets[rank], program.rank_offsets[rank + 1])
        super().__init__(program, order, bench, Hooks([reporter]), faults=faults, repeats=False)

    def _injection(self, faults: Sequence[Fault]) -> Injection:
        modules = self._model.stages.__getitem__
        injection = Injection(faults, tell=self._tell, module_of=modules, kill=self._die)

        def hold_back(kind: Kind, stage: int, micro_batch: int) -> float:
            return injection.hold_back(self.conductor.step, Action(kind, stage, micro_batch))

        self._courier.hold_back = hold_back
        return injection

    def _die(self) -> None:
        """End this process at once, but for what it still has to tell."""
        self._reporter.flush()
        os.kill(os.getpid(), signal.SIGKILL)

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
