"""A program made ready to run on a cut model: torch's stages and runtime, and our conductor among them."""

from __future__ import annotations

import functools
import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from explorer.core import Action, Costs, Kind, Program
from explorer.errors import ExplorerError, RunError
from explorer.execute._torch import Engine, Stage
from explorer.execute.activations import Activations
from explorer.execute.allocator import Allocated
from explorer.execute.checks import Loss, Values
from explorer.execute.conductor import Conductor, Slots
from explorer.execute.faults import Fault
from explorer.execute.fit import Sample
from explorer.execute.hooks import Hooks
from explorer.execute.injection import Injection
from explorer.execute.settings import no_collection
from explorer.execute.stages import Chain, CutModel, describe, first_line

_WRAPPED = re.compile(r"failed to run (forward|stage backward)", re.IGNORECASE)


@dataclass(frozen=True)
class Bench:
    """What a run and its warm-up share.

    Attributes:
        model: cut into stages.
        samples: what each stage takes and gives.
        loss: of one micro-batch, or None.
        clock: seconds now.
        seeds: of random layers, or None where there are none.
    """

    model: CutModel
    samples: Sequence[Sample]
    loss: Loss | None
    clock: Callable[[], float]
    seeds: Seeds | None

    def buffers(self) -> Iterator[torch.Tensor]:
        """What the model, and a loss that is a module, change as they run."""
        modules = [*self.model.stages, *([self.loss] if isinstance(self.loss, nn.Module) else [])]
        return (buffer for module in modules for buffer in module.buffers())

    def wait(self) -> None:
        """Block until the device has done all it was given."""
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)

    def follower(self, rank_of_stage: Sequence[int]) -> Activations | Allocated:
        """Who counts the bytes that stages hold: what autograd saves or, on CUDA, the allocator."""
        device = self.model.device
        if device.type == "cuda":
            return Allocated(rank_of_stage, lambda: torch.cuda.memory_allocated(device))
        return Activations(rank_of_stage, self.model.storages())


@dataclass(frozen=True)
class Seeds:
    """A seed of its own for every layer's forward: what it draws depends neither on the order nor on the stages.

    A stage whose layers are not known, for a tracer has cut it, has one seed for all of them.

    Attributes:
        base: what the caller's generator was seeded with.
        first_step: how many steps the training had done before.
    """

    base: int
    first_step: int = 0

    def begin(self, module: nn.Module, step: int, stage: int, micro_batch: int) -> None:
        """A forward of a stage is about to run."""
        if isinstance(module, Chain):
            module.seed = functools.partial(self._seed, step, micro_batch)
        else:
            self._seed(step, micro_batch, f"stage {stage}")

    def _seed(self, step: int, micro_batch: int, layer: str) -> None:
        """Seed torch and Python for this layer."""
        number = zlib.crc32(f"{self.first_step + step} {micro_batch} {layer}".encode())
        torch.manual_seed((self.base + number) % 2**63)
        random.seed(number)


class Session:
    """Runs steps of one program. A new one is made for every run: after an exception torch's must not be used again.

    Args:
        program: that runs.
        order: (n_slots,) the slots in the order they run in.
        bench: model, loss and clock.
        hooks: who is told.
        costs: the link model, for those who hear of transfers.
        warms_up: the program this is the warm-up for; None for the run itself.
        faults: to make happen.
        repeats: whether the hooks are told of memory in each step, or in the first and know the rest.
    """

    def __init__(
        self,
        program: Program,
        order: Slots,
        bench: Bench,
        hooks: Hooks,
        *,
        costs: Costs | None = None,
        warms_up: Program | None = None,
        faults: Sequence[Fault] = (),
        repeats: bool = True,
    ) -> None:
        self._model, self._seeds = bench.model, bench.seeds
        self._program, self._warms_up = program, warms_up
        self.conductor = Conductor(
            program,
            order,
            hooks,
            clock=bench.clock,
            wait=bench.wait,
            before=self._seed,
            activations=bench.follower(_ranks(program, warms_up)),
            gradient_bytes=self._gradient_bytes,
            describe=self._describe,
            costs=costs,
            injection=self._injection(faults) if faults else None,
            repeats=repeats,
        )
        self._engine = self._assemble(bench)

    def _injection(self, faults: Sequence[Fault]) -> Injection:
        return Injection(faults, tell=self._tell, module_of=self._model.stages.__getitem__)

    def _tell(self, name: str, event: Any) -> None:
        self.conductor.tell(name, event)

    def _assemble(self, bench: Bench) -> Engine:
        """Torch's stages, and its runtime over them."""
        n_stages, loss = self._program.n_stages, bench.loss
        stages = [
            Stage(
                module,
                stage,
                n_stages,
                inputs=bench.samples[stage].inputs,
                outputs=bench.samples[stage].outputs,
                watch=self.conductor,
                computes_loss=loss is not None and stage == n_stages - 1,
            )
            for stage, module in enumerate(bench.model.stages)
        ]
        n, trains = self._program.n_micro_batches, self._program.has_backward
        return Engine(stages, n, loss, trains=trains, order=self.conductor.order)

    def step(self, number: int, inputs: Sequence[Values], targets: Sequence[torch.Tensor] | None) -> float:
        """One step without its optimizer update; the mean loss over its micro-batches, NaN without a loss.

        Raises:
            RunError: if something on its way fails, with that as its cause.
        """
        for parameter in self._model.parameters.values():
            parameter.grad = None
        self.conductor.start_step(number)
        # a first layer may work in place; the batch stays as it is for the next step, and for the reference
        own = [tuple(value.clone() for value in values) for values in inputs]
        try:
            with no_collection():
                self._engine.run(own, targets)
        except Exception as error:
            if isinstance(error, ExplorerError) or error is self.conductor.hook_error:
                raise
            raise self._explain(error) from _root(error)
        return float(self.conductor.losses.mean())

    def _explain(self, error: Exception) -> Exception:
        """One sentence for what a layer, a loss or torch raised."""
        root = _root(error)
        if isinstance(root, ExplorerError):
            return root
        if self.conductor.running is None:
            return RunError(f"a step must run through; torch's runtime raised {first_line(root)}")
        action = self.conductor.running
        if action.kind == Kind.F:
            layer = self._model.layer_at(action.stage)
            where = "in the loss" if root is error else f"in layer {layer}" if layer else "in its module"
        else:
            where = self._model.layers_of(action.stage)
        return RunError(
            f"every action must run through; {self._describe(action)} failed {where}: {first_line(root)}; mend it there"
        )

    def _seed(self, step: int, stage: int, micro_batch: int) -> None:
        """Seed a stage's forward, where anything is random."""
        if self._seeds is not None:
            self._seeds.begin(self._model.stages[stage], step, stage, micro_batch)

    def _describe(self, action: Action) -> str:
        """An action, where it runs and when, in words."""
        moment = self._moment()
        if self._warms_up is not None:
            # every micro-batch of a warm-up is the first one
            action, moment = action._replace(micro_batch=0), "warming up"
        placement = (self._warms_up or self._program).placement
        return describe(action, int(placement.rank_of(action.stage, action.micro_batch)), moment)

    def _moment(self) -> str:
        """When something happens, in words."""
        return f"step {self.conductor.step}"

    def _gradient_bytes(self, stage: int) -> int:
        grads = [parameter.grad for parameter in self._model.of_stage(stage)]
        return sum(grad.nbytes for grad in grads if grad is not None)


def _ranks(program: Program, warms_up: Program | None) -> list[int]:
    """The rank that holds each stage's memory; while warming up each stage is measured as if alone on one."""
    ranks: list[int] = program.placement.routes[0].tolist()
    return ranks if warms_up is None else list(range(program.n_stages))


def _root(error: Exception) -> BaseException:
    """What torch wrapped, if it did."""
    found: BaseException = error
    while isinstance(found, RuntimeError) and _WRAPPED.search(str(found)) and found.__cause__ is not None:
        found = found.__cause__
    return found
