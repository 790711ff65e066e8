"""A run's checkpoints in a folder: when one is due, what it is called, how many are kept, which is the latest."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from explorer.errors import InputError
from explorer.execute.checkpoint_file import remove_parts
from explorer.execute.checkpoint_state import OptimizerState, State

_NAME = re.compile(r"step-(\d{8,18})\.safetensors")


@dataclass(frozen=True)
class Saving:
    """Where and how often a run saves.

    Attributes:
        folder: that holds this run's checkpoints alone.
        every: steps from one to the next; the last step is saved in any case.
        keep_last: how many stay.
        first_step: how many steps were done before this run.
        last_step: how many will be at its end.
        seed: that random layers count from.
    """

    folder: Path
    every: int
    keep_last: int
    first_step: int
    last_step: int
    seed: int

    def is_due(self, step: int) -> bool:
        """Whether the state is saved after this run's step `step`, counted from 0."""
        done = self.first_step + step + 1
        return done % self.every == 0 or done == self.last_step

    def save(
        self, step: int, model: Mapping[str, torch.Tensor], optimizer: OptimizerState, optimizer_type: str
    ) -> None:
        """Save the state after this run's step `step`; delete what is not kept, and what a killed run has left."""
        done = self.first_step + step + 1
        State(done, self.seed, model, optimizer, optimizer_type).write(self.folder / f"step-{done:08d}.safetensors")
        remove_parts(self.folder)
        for _, path in sorted(_found(self.folder))[: -self.keep_last]:
            path.unlink(missing_ok=True)


class Start(NamedTuple):
    """What a run begins with.

    Attributes:
        resumed: the state that it goes on from, or None.
        seed: that random layers count from.
        saving: where and how often its own state is saved, or None.
    """

    resumed: State | None
    seed: int
    saving: Saving | None

    @property
    def first_step(self) -> int:
        """How many steps were done before."""
        return self.resumed.step if self.resumed is not None else 0

    @property
    def optimizer(self) -> OptimizerState:
        """What the optimizer kept of each parameter."""
        return self.resumed.optimizer if self.resumed is not None else {}


def start_of(
    checkpoint: str | PathLike[str] | None,
    resume: str | PathLike[str] | None,
    *,
    every: int,
    keep_last: int,
    n_steps: int,
    trains: bool,
) -> Start:
    """What a run begins with, read from `resume` and checked.

    Raises:
        InputError: if there is nothing to resume from, or nothing can be saved in `checkpoint`.
    """
    resumed = None if resume is None else latest(resume)
    first, seed = (resumed.step, resumed.seed) if resumed is not None else (0, torch.initial_seed())
    numbers = {"every": every, "keep_last": keep_last, "first_step": first, "n_steps": n_steps, "seed": seed}
    return Start(resumed, seed, saving_of(checkpoint, trains=trains, **numbers))


def latest(place: str | PathLike[str]) -> State:
    """The state in a file, or in the latest file of a folder.

    Raises:
        InputError: if there is none.
    """
    path = _path(place, "resume")
    if path.is_dir():
        found = sorted(_found(path))
        if not found:
            raise InputError(
                f"a run resumes from a checkpoint; {path} has no step-….safetensors; run with "
                f"checkpoint={str(place)!r} first",
                argument="resume",
            )
        path = found[-1][1]
    return State.read(path)


def saving_of(
    place: str | PathLike[str] | None,
    *,
    every: int,
    keep_last: int,
    first_step: int,
    n_steps: int,
    seed: int,
    trains: bool,
) -> Saving | None:
    """Where and how often, checked; None where nothing is to be saved.

    Raises:
        InputError: if a number is none, or the folder holds the checkpoints of a run that is further on.
    """
    for argument, number in {"every": every, "keep_last": keep_last}.items():
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise InputError(
                f"{argument} is a whole number of at least 1; got {number!r}; try 1", argument=argument, legal=(1,)
            )
    if place is None:
        return None
    if not trains:
        raise InputError(
            "a checkpoint is of a training; got a program that runs no backward; leave it out", argument="checkpoint"
        )
    folder = _path(place, "checkpoint")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"a checkpoint goes into a folder; {folder} is a file; give a folder", argument="checkpoint")
    _refuse_read_only(folder)
    further = [step for step, _ in _found(folder) if step > first_step] if folder.exists() else []
    if further:
        raise InputError(
            f"a checkpoint's folder holds one run; {folder} has step {max(further)} of another, and this one begins at "
            f"step {first_step}; give another folder, or resume={str(place)!r}",
            argument="checkpoint",
        )
    return Saving(folder, int(every), int(keep_last), first_step, first_step + n_steps, seed)


def _refuse_read_only(folder: Path) -> None:
    """Say at once what a run would else say at its first save, when hours of it may be lost."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"a checkpoint's folder can be written to; {there} cannot: {os.strerror(errno.EACCES)}; give another",
            argument="checkpoint",
        )


def _path(place: Any, argument: str) -> Path:
    if not isinstance(place, (str, PathLike)):
        raise InputError(
            f'{argument} is the path of a folder; got {type(place).__name__}; try "checkpoints/"', argument=argument
        )
    path, why = Path(place), "" if str(place) else "it is empty"
    try:
        path.stat()
    except FileNotFoundError:
        pass  # it can be made
    except (OSError, ValueError) as error:  # too long, or with a character that no path has
        why = getattr(error, "strerror", None) or str(error)
    if why:
        raise InputError(
            f'{argument} is the path of a folder; got {str(place)[:40]!r}, which is none: {why}; try "checkpoints/"',
            argument=argument,
        )
    return path


def _found(folder: Path) -> list[tuple[int, Path]]:
    """Number of steps and file of each checkpoint."""
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return [(int(match[1]), path) for match, path in matches if match and not path.is_dir()]
