"""Rehearsing a model's first forward in a worker, where the code of others is to run: the caller outlives its end."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from explorer.core import Action, Kind, Program
from explorer.errors import ModelError, RunError
from explorer.execute.cutting import bounds_of, layers_of
from explorer.execute.keeper import lent
from explorer.execute.rehearsal import LOSS, Rehearsal, is_foreign
from explorer.execute.stages import describe
from explorer.execute.tasks import search_path
from explorer.execute.training import Job
from explorer.execute.workers import Workers

_TICK = 0.1  # seconds between two looks at whether it goes on
_RANK = 0  # of the worker
_MOMENT = "before the first step"


def rehearsed(job: Job, model: Any, split_points: Sequence[str] | None) -> Job:
    """The job, once a first forward of the model and its loss has not ended the process it ran in.

    It is left out where no code but torch's and ours runs, on a GPU, of which each rank has its own, and of what a run
    will refuse. What it raises the run will meet by itself.

    Raises:
        RunError: if the process has ended, or nothing is heard of it for long; it names the action.
    """
    whole = _module(model)
    if whole is None or not is_foreign(whole, job.loss) or _is_on_device(whole):
        return job
    marks = _marks(whole, job.program.n_stages, split_points)
    if marks is None:
        return job
    rehearsal = _rehearsal(job, whole, list(marks))
    with contextlib.suppress(_BrokenError), lent(job.program.n_ranks) as loan:
        job = dataclasses.replace(job, forked=(loan.n_forked, loan.waited))
        try:
            loan.workers.send(loan.workers.begin(job.program.n_ranks, job.timeout), rehearsal)
        except ModelError:  # a run will say so, unless it finds something worse
            return job
        _follow(loan.workers, job, marks)
    return job


class _BrokenError(Exception):
    """The worker could not take the model: it is of no use any more."""


def _module(model: Any) -> nn.Module | None:
    if isinstance(model, nn.Module) and not isinstance(model, nn.ModuleList):
        return model
    listed = isinstance(model, (list, tuple, nn.ModuleList))
    return nn.Sequential(*model) if listed and all(isinstance(layer, nn.Module) for layer in model) else None


def _is_on_device(whole: nn.Module) -> bool:
    return any(tensor.device.type != "cpu" for tensor in (*whole.parameters(), *whole.buffers()))


def _marks(whole: nn.Module, n_stages: int, split_points: Sequence[str] | None) -> dict[str, int] | None:
    """Name of each submodule to be told of → its stage; None where the model cannot be cut so."""
    layers = layers_of(whole)
    if layers is None:
        known = dict(whole.named_modules())
        points = list(split_points or ())
        if len(points) + 1 != n_stages or any(point not in known for point in points):
            return None
        return {point: stage for stage, point in enumerate(points, 1)}
    names = [name for name, _ in layers]
    try:
        bounds = bounds_of(names, n_stages, split_points)
    except ModelError:
        return None
    return {name: sum(place >= begin for begin in bounds[1:-1]) for place, name in enumerate(names)}


def _rehearsal(job: Job, whole: nn.Module, marks: list[str]) -> Rehearsal:
    return Rehearsal(
        _RANK,
        search_path(),
        torch.get_default_dtype(),
        whole,
        layers_of(whole) is not None,
        marks,
        tuple(value.clone() for value in job.inputs[0]),
        job.target,
        job.loss,
        job.program.has_backward,
    )


def _follow(workers: Workers, job: Job, marks: dict[str, int]) -> None:
    """Hear of the worker until it is through."""
    last_heard, reached = time.monotonic(), None
    while True:
        for rank, report in workers.receive(_TICK):
            last_heard = time.monotonic()
            if rank != _RANK:
                continue  # it has ended between two runs; the run will not find it well
            if report is None:
                number = workers.end(gone=[_RANK]).get(_RANK, 0)
                raise _ended(number, _place(job.program, marks, reached))
            what, _, value = report
            if what == "failed":
                raise _BrokenError
            if what == "rehearsed":
                workers.files.add(value)
                return
            reached = value
        if time.monotonic() - last_heard > job.timeout:
            where = _place(job.program, marks, reached)
            raise RunError(
                f"every action must run through; {where} has not ended within {job.timeout:g} s; look for a loop or a "
                f"lock there or, if it takes that long, give more than timeout={job.timeout:g}"
            )


def _place(program: Program, marks: dict[str, int], reached: str | None) -> str:
    """The action that was reached, where it runs, and in which layer, in words."""
    stage = program.n_stages - 1 if reached == LOSS else marks.get(reached or "", 0)
    action = describe(Action(Kind.F, stage, 0), int(program.placement.rank_of(stage, 0)), _MOMENT)
    if reached is None:
        return f"{action}, or what is called before it,"
    return f"{action}, in the loss," if reached == LOSS else f"{action}, in layer {reached},"


def _ended(number: int, where: str) -> RunError:
    if not number:
        return RunError(
            f"every action must run through; {where} has ended its process by itself; look for an exit there"
        )
    advice = "the system may have been short of memory" if number == signal.SIGKILL else "see the error stream"
    name = signal.Signals(number).name
    return RunError(f"every action must run through; {where} was ended by {name}, with its process; {advice}")
