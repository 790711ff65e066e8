"""Every schedule of the registry at every size it exists for, and plain training to compare a run with."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import torch
from torch import nn

import explorer as ex
from explorer.core import Kind, Stream
from explorer.errors import ScheduleError
from explorer.schedules import REGISTRY

WIDTH, N_STEPS, LEARNING_RATE = 8, 3, 0.3
BACKENDS = ("kernel", "processes")
RANKS, CHUNKS, MICRO_BATCHES = (2, 3, 4), (1, 2), range(1, 17)
REFUSED = {
    "dualpipe": "needs one weight copy a stage; dualpipe has 2",
    "chimera": "needs one weight copy a stage; chimera has 2",
    "pipedream": "keeps one version of the weights and updates them after the step; pipedream keeps up to",
    "pipedream_2bw": "keeps one version of the weights and updates them after the step; pipedream_2bw keeps up to 2",
    "seq1f1b": "passes whole sequences from stage to stage; seq1f1b cuts them into",
}
TRAINS = [name for name in REGISTRY if name not in {*REFUSED, "forward_only"}]  # synchronous, one copy, whole sequences


class Size(NamedTuple):
    """Numbers that a schedule exists for."""

    n_ranks: int
    n_chunks: int
    n_micro_batches: int


class Apart(NamedTuple):
    """The largest relative differences between a run and plain training; infinite where something is missing."""

    losses: float
    gradients: float  # of the last step, by parameter
    moved: float  # what the updates of all steps came to, by parameter

    @property
    def is_rounding(self) -> bool:
        """Of 32 bits; parameters are far larger than what they moved by, and so is their rounding."""
        return self.losses < 1e-5 and self.gradients < 1e-5 and self.moved < 1e-4


@cache
def sizes(name: str, n_ranks: int) -> tuple[tuple[Size, ex.Program], ...]:
    """All at which the schedule exists, found by asking it."""
    return tuple(_sizes(name, n_ranks))


def _sizes(name: str, n_ranks: int) -> Iterator[tuple[Size, ex.Program]]:
    for n_chunks in CHUNKS:
        for n_micro_batches in MICRO_BATCHES:
            size = Size(n_ranks, n_chunks, n_micro_batches)
            try:
                yield size, ex.schedule(name, **size._asdict())
            except ScheduleError:
                continue


def sample(name: str, n_ranks: int, backend: str) -> list[tuple[Size, ex.Program]]:
    """For each number of chunks the fewest micro-batches, and by turns the most or the middle one of the odd ones.

    What one backend leaves out the other takes.
    """
    every, chosen = sizes(name, n_ranks), []
    takes_odd = (TRAINS.index(name) + n_ranks + BACKENDS.index(backend)) % 2
    for n_chunks in CHUNKS:
        found = [one for one in every if one[0].n_chunks == n_chunks]
        odd = [one for one in found if one[0].n_micro_batches % 2]
        chosen += [*found[:1], *(odd[len(odd) // 2 :][:1] if takes_odd else found[-1:])]
    return list({size: (size, program) for size, program in chosen}.values())


def squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs - targets).square().sum(-1).mean()


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=LEARNING_RATE)


def layers_and_batch(program: ex.Program) -> tuple[list[nn.Module], tuple[torch.Tensor, torch.Tensor]]:
    """A layer a stage, all of one shape: one in another's place would run, and be wrong; two rows a micro-batch."""
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(program.n_stages)]
    inputs, targets = torch.randn(2, 2 * program.n_micro_batches, WIDTH).unbind()
    return layers, (inputs, targets)


def execute(program: ex.Program, backend: str, layers, batch, n_steps: int = N_STEPS) -> ex.Run:
    return ex.execute(program, layers, batch, loss=squared, optimizer=sgd, n_steps=n_steps, backend=backend)


def apart(program: ex.Program, backend: str) -> Apart:
    """Train for three steps, and plainly too, and compare."""
    layers, batch = layers_and_batch(program)
    run = execute(program, backend, layers, batch)
    model = nn.Sequential(*copy.deepcopy(layers))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    losses = _train_plainly(model, *batch)
    if not (_is_whole(run, before) and run.parity):
        return Apart(math.inf, math.inf, math.inf)
    trained, parameters = run.state_dict(), dict(model.named_parameters())
    return Apart(
        _relative(torch.tensor(run.losses), torch.tensor(losses)),
        max(_relative(run.gradients[name], p.grad) for name, p in parameters.items()),
        max(_relative(trained[name] - before[name], p.detach() - before[name]) for name, p in parameters.items()),
    )


def _is_whole(run: ex.Run, parameters: Mapping[str, torch.Tensor]) -> bool:
    """Whether it has every step's loss, every parameter's gradient and value, and every action's event."""
    events, names = run.trace.events, parameters.keys()
    n_done = ((events.stream == Stream.COMPUTE) & (events.kind != Kind.U)).sum()
    expected = (N_STEPS, names, names, N_STEPS * run.trace.program.n_actions)
    return (len(run.losses), run.gradients.keys(), run.state_dict().keys(), n_done) == expected


def _relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def _train_plainly(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """As anybody writes it: the whole batch at once, through the model in one piece."""
    optimizer, losses = sgd(model.parameters()), []
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        loss = squared(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
