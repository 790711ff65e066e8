"""The hidden warm-up: a few micro-batches through every stage, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from explorer.core import Category, Costs, Kind, Placement, Program, RankOrder
from explorer.execute.checks import Values
from explorer.execute.events import Memory, SlotEnd
from explorer.execute.hooks import Hook, Hooks
from explorer.execute.session import Bench, Session
from explorer.execute.typical import seconds_of_passes

_ROUNDS = 4  # the first pays for pages, caches and lazy initialisation, and is left out

Floats = npt.NDArray[np.float64]


def calibrate(
    program: Program, bench: Bench, inputs: Values, target: torch.Tensor | None, *, links: Costs | None, hooks: Hooks
) -> Costs:
    """What one action of each stage costs, in the forms `program` uses, and the link model.

    Seconds are the median of the rounds behind an unmeasured first. Gradients and buffers are left as they were.

    Args:
        program: that will run.
        bench: model, loss and clock.
        inputs: of one micro-batch.
        target: of the same one, or None.
        links: whose latency, bandwidth and, if given, message_bytes hold; None for free links.
        hooks: whose pulse may end it.
    """
    warm_up = warm_up_program(program)
    n = warm_up.n_micro_batches
    probe = Probe()
    session = Session(warm_up, np.arange(warm_up.n_slots), bench, Hooks([probe, _Pulse(hooks)]), warms_up=program)
    buffers = {buffer: buffer.detach().clone() for buffer in bench.buffers()}
    try:
        session.step(0, [inputs] * n, None if target is None else [target] * n)
    finally:
        with torch.no_grad():
            for buffer, before in buffers.items():
                buffer.copy_(before)
        for parameter in bench.model.parameters.values():
            parameter.grad = None
    return costs_of(program, bench, probe, links)


def warm_up_program(program: Program) -> Program:
    """One rank, all stages: in each round a micro-batch there and back, once for each form of backward in use."""
    n_stages = program.n_stages
    splits = np.array([((program.stage == s) & (program.kind == Kind.I)).any() for s in range(n_stages)])
    whole = np.array([((program.stage == s) & (program.kind == Kind.B)).any() for s in range(n_stages)])
    forms = [splits, ~whole] if (splits & whole).any() else [splits]
    kinds, stages, micro_batches = [], [], []
    for number in range(_ROUNDS * len(forms)):
        back = forms[number % len(forms)]
        round_ = [(Kind.F, stage) for stage in range(n_stages)]
        if program.has_backward:
            for stage in reversed(range(n_stages)):
                round_ += [(Kind.I, stage), (Kind.W, stage)] if back[stage] else [(Kind.B, stage)]
        kinds += [kind for kind, _ in round_]
        stages += [stage for _, stage in round_]
        micro_batches += [number] * len(round_)
    columns = np.array(kinds, np.int8), np.array(stages, np.int32), np.array(micro_batches, np.int32)
    return Program.from_columns("warm-up", Placement.looped(1, n_stages), _ROUNDS * len(forms), [RankOrder(*columns)])


class Probe(Hook):
    """Keeps seconds by kind and stage, and the bytes a forward leaves behind."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[Kind, int], list[float]] = defaultdict(list)
        self.bytes: dict[tuple[int, int], int] = defaultdict(int)

    def slot_end(self, event: SlotEnd) -> None:
        """Keep how long it took."""
        action = event.actions[0]
        self.seconds[action.kind, action.stage].append(event.seconds)

    def memory(self, event: Memory) -> None:
        """Keep what was taken."""
        if event.category == Category.ACTIVATIONS and event.delta > 0:
            self.bytes[event.stage, event.micro_batch] += event.delta


class _Pulse(Hook):
    """Passes every slot's beginning on as a pulse."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def slot_start(self, event: object) -> None:
        """Tell the run's hooks that something goes on."""
        self._hooks.pulse()


def costs_of(program: Program, bench: Bench, probe: Probe, links: Costs | None) -> Costs:
    """What a warm-up has measured, and the link model."""
    n_stages = program.n_stages
    model, samples = bench.model, bench.samples
    links = links or Costs()
    own_messages = np.array([sum(value.nbytes for value in sample.outputs) for sample in samples], float)
    return Costs(
        **seconds_of_passes({kind: _median(probe, kind, n_stages) for kind in (Kind.F, Kind.B, Kind.I, Kind.W)}),
        activation_bytes=np.array([max(_of_stage(probe, s)) for s in range(n_stages)], float),
        parameter_bytes=np.array([sum(p.nbytes for p in model.of_stage(s)) for s in range(n_stages)], float),
        latency=links.latency,
        bandwidth=links.bandwidth,
        links=links.links,
        sharing=links.sharing,
        message_bytes=links.message_bytes if np.any(links.message_bytes) else own_messages,
    )


def _median(probe: Probe, kind: Kind, n_stages: int) -> Floats:
    """(n_stages,) median seconds behind the first round; NaN where a stage has none of this kind."""
    lists: Sequence[list[float]] = [probe.seconds.get((kind, stage), []) for stage in range(n_stages)]
    return np.array([np.median(seconds[1:] or seconds or [np.nan]) for seconds in lists])


def _of_stage(probe: Probe, stage: int) -> list[int]:
    return [size for (s, _), size in probe.bytes.items() if s == stage] or [0]
