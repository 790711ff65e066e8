"""The steps of a run: the pipeline's slots, then each stage's optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from explorer.core import Category, Costs, Program
from explorer.errors import ExplorerError, RunError
from explorer.execute.calibrate import calibrate
from explorer.execute.checkpoint_folder import Saving
from explorer.execute.checkpoint_state import OptimizerState, load_optimizer_state, optimizer_state_by_name, type_of
from explorer.execute.checks import Loss, Values
from explorer.execute.conductor import execution_order
from explorer.execute.events import Calibrated, Memory, StepEnd, StepStart, Updated
from explorer.execute.faults import Fault
from explorer.execute.hooks import Hooks
from explorer.execute.parity import Outcome
from explorer.execute.parity_rounding import Sketch, sketch_of
from explorer.execute.session import Bench, Session
from explorer.execute.settings import no_collection
from explorer.execute.stages import Chain, CutModel, first_line, no_pulse
from explorer.execute.updates import MakeOptimizer, make_optimizers, state_bytes


@dataclass(frozen=True)
class Job:
    """What is to be run, checked.

    Attributes:
        program: that runs.
        inputs: of each micro-batch.
        targets: of each micro-batch, or None.
        loss: of a micro-batch, or None.
        optimizer: makes a stage's optimizer; None trains nothing.
        n_steps: how often.
        links: whose latency and bandwidth hold; None for free ones.
        timeout: seconds after which a rank that is not heard of is given up.
        begun: when it was asked for, in seconds of `time.perf_counter`.
        optimizer_state: of a training that goes on, by parameter name.
        saving: where and how often its state is saved, or None.
        faults: to make happen.
        forked: workers that were forked for it before it began, and the seconds this was waited for.
    """

    program: Program
    inputs: list[Values]
    targets: list[torch.Tensor] | None
    loss: Loss | None
    optimizer: MakeOptimizer | None
    n_steps: int
    links: Costs | None
    timeout: float = 30.0
    begun: float = 0.0
    optimizer_state: OptimizerState = field(default_factory=dict)
    saving: Saving | None = None
    faults: tuple[Fault, ...] = ()
    forked: tuple[int, float] = (0, 0.0)

    @property
    def target(self) -> torch.Tensor | None:
        """Of the first micro-batch."""
        return self.targets[0] if self.targets else None


def train(job: Job, bench: Bench, hooks: Hooks) -> Outcome:
    """Warm up, then run every step and its optimizer updates."""
    program, model = job.program, bench.model
    costs = calibrate(program, bench, job.inputs[0], job.target, links=job.links, hooks=hooks)
    hooks.calibrated(Calibrated(costs))
    for stage in model.stages:
        if isinstance(stage, Chain):
            stage.pulse = no_pulse
    session = Session(program, execution_order(program, costs), bench, hooks, costs=costs, faults=job.faults)
    optimizers = optimizers_of(job, model)
    losses, sketches = list[float](), list[Sketch]()
    for step in range(job.n_steps):
        hooks.step_start(StepStart(step))
        tell_held(job, bench, optimizers, hooks, step)
        loss = session.step(step, job.inputs, job.targets)
        sketches.append(sketch_of(model.parameters))
        update(job, bench, optimizers, hooks, step)
        if job.saving is not None and job.saving.is_due(step):
            kept = optimizer_state_by_name(optimizers.values(), model.parameters)
            job.saving.save(step, model.state(), kept, type_of(optimizers.values()))
        losses.append(loss)
        hooks.step_end(StepEnd(step, loss))
    gradients = {name: p.grad for name, p in model.parameters.items() if p.grad is not None}
    outputs = session.conductor.outputs
    output = torch.cat([outputs[m] for m in sorted(outputs)]) if outputs else None
    losses = losses if job.loss is not None else []
    return Outcome(losses, gradients, dict(model.parameters), output, model.buffers(), sketches)


def optimizers_of(job: Job, model: CutModel) -> dict[int, torch.optim.Optimizer]:
    """Stage → its optimizer, with the state that a training which goes on had."""
    made = make_optimizers(job.optimizer, model) if job.program.has_backward else {}
    load_optimizer_state(made.values(), model.parameters, job.optimizer_state)
    return made


def tell_held(job: Job, bench: Bench, optimizers: Mapping[int, torch.optim.Optimizer], hooks: Hooks, step: int) -> None:
    """What every stage holds when a step begins: its parameters, and the state of its optimizer."""
    for stage in range(job.program.n_stages):
        size = sum(parameter.nbytes for parameter in bench.model.of_stage(stage))
        _tell_memory(job, hooks, step, stage, Category.PARAMETERS, size, slot=-1)
        if stage in optimizers:
            _tell_memory(job, hooks, step, stage, Category.OPTIMIZER, state_bytes(optimizers[stage]), slot=-1)


def update(job: Job, bench: Bench, optimizers: Mapping[int, torch.optim.Optimizer], hooks: Hooks, step: int) -> None:
    """Each stage's optimizer takes its step."""
    program = job.program
    for stage, optimizer in optimizers.items():
        rank, before = int(program.placement.routes[0][stage]), state_bytes(optimizer)
        bench.wait()
        begun = bench.clock()
        try:
            with no_collection():
                optimizer.step()
        except ExplorerError:
            raise
        except Exception as error:
            raise RunError(
                f"every optimizer update must run through; that of stage {stage} on rank {rank} in step {step} failed: "
                f"{first_line(error)}; mend the optimizer"
            ) from error
        bench.wait()
        hooks.updated(Updated(step, rank, stage, bench.clock() - begun, begun))
        grown = state_bytes(optimizer) - before
        _tell_memory(job, hooks, step, stage, Category.OPTIMIZER, grown, slot=program.n_slots)


def _tell_memory(job: Job, hooks: Hooks, step: int, stage: int, category: Category, size: int, *, slot: int) -> None:
    if size:
        rank = int(job.program.placement.routes[0][stage])
        hooks.memory(Memory(step, slot, slot > 0, rank, category, stage, -1, size))
