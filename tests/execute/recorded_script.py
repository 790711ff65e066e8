"""A user's training script: every schedule class of torch, each trained plainly and recorded, with a diary of its own.

    torchrun --nproc-per-node 2 recorded_script.py FOLDER

The diary is kept by the layers themselves: when each forward ran, and when its backward came by.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules

import explorer as ex

WIDTH, N_MICRO_BATCHES, N_STEPS = 8, 4, 2
NAMES = {
    **dict.fromkeys(("GPipe", "1F1B"), "line"),
    **dict.fromkeys(("Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble"), "loop"),
    **dict.fromkeys(("ZBVZeroBubble", "DualPipeV"), "v"),
}
OWN_ORDER = "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n"  # backwards from the last


class _Noted(torch.autograd.Function):
    """Passes everything on, and notes when its backward comes by."""

    @staticmethod
    def forward(ctx, values, diary, stage, micro_batch):
        ctx.note = diary, stage, micro_batch
        return values.view_as(values)

    @staticmethod
    def backward(ctx, gradient):
        diary, stage, micro_batch = ctx.note
        diary.append(("backward", stage, micro_batch, time.perf_counter_ns(), time.perf_counter_ns()))
        return gradient, None, None, None


class Layer(nn.Module):
    def __init__(self, stage):
        super().__init__()
        torch.manual_seed(stage)
        self.stage, self.linear = stage, nn.Linear(WIDTH, WIDTH)
        self.diary, self.count = [], 0

    def forward(self, values):
        begin = time.perf_counter_ns()
        values = self.linear(values)
        if torch.is_grad_enabled() and values.requires_grad:
            values = _Noted.apply(values, self.diary, self.stage, self.count % N_MICRO_BATCHES)
        values = values.tanh()
        self.diary.append(("forward", self.stage, self.count % N_MICRO_BATCHES, begin, time.perf_counter_ns()))
        self.count += 1
        return values


def placed(shape, rank, n_ranks):
    return {"line": [rank], "loop": [rank, n_ranks + rank], "v": [rank, 2 * n_ranks - 1 - rank]}[shape]


def made(name, layers, stages_of, n_stages, folder):
    example = (torch.zeros(2, WIDTH),)
    stages = [
        PipelineStage(layer, stage, n_stages, torch.device("cpu"), input_args=example)
        for layer, stage in zip(layers, stages_of, strict=True)
    ]

    def loss(output, target):
        return (output - target).square().mean()

    if name == "own":
        file = folder / f"own-{dist.get_rank()}.csv"  # a rank each: one file would be read while the other writes it
        file.write_text(OWN_ORDER)
        schedule = schedules._PipelineScheduleRuntime(stages, N_MICRO_BATCHES, loss_fn=loss)
        schedule._load_csv(str(file))
        return stages, schedule
    kind = schedules.get_schedule_class(name)
    return stages, kind(stages if len(stages) > 1 else stages[0], N_MICRO_BATCHES, loss_fn=loss)


def train(stages, schedule, n_steps):
    batch = torch.randn(2 * N_MICRO_BATCHES, WIDTH, generator=torch.Generator().manual_seed(7))
    losses = []
    for _ in range(n_steps):
        for stage in stages:
            stage.submod.diary.clear()
            stage.submod.count = 0  # torch runs one forward more to learn shapes, before the first step
            stage.submod.zero_grad(set_to_none=True)
        of_step = []
        arguments = (batch,) if stages[0].is_first else ()
        schedule.step(*arguments, target=-batch if any(s.is_last for s in stages) else None, losses=of_step)
        losses.append([loss.item() for loss in of_step])
    gradients = [p.grad.flatten().tolist() for stage in stages for p in stage.submod.parameters()]
    return losses, gradients


def main(folder):
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    told = {}
    for name, shape in {**NAMES, "own": "line"}.items():
        stages_of = placed(shape, rank, n_ranks)
        n_stages = n_ranks * len(stages_of)
        diary = []
        layers = [Layer(stage) for stage in stages_of]
        plain = train(*made(name, copy.deepcopy(layers), stages_of, n_stages, folder), N_STEPS)
        for layer in layers:
            layer.diary = diary
        stages, schedule = made(name, layers, stages_of, n_stages, folder)
        with ex.record(folder / name, schedule):
            recorded = train(stages, schedule, N_STEPS)
            told[name] = {"plain": plain, "recorded": recorded, "diary": [*diary]}
            if name == "GPipe":
                batch = torch.zeros(2 * N_MICRO_BATCHES, WIDTH)
                schedule.eval(*((batch,) if rank == 0 else ()), target=batch)
        table = getattr(schedule, "pipeline_order_with_comms", None)
        told[name]["table"] = None if table is None else [str(action) for action in table[rank]]
    (folder / f"told-{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
