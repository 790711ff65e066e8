"""Which device each rank in a process of its own works on, and how they speak to each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from explorer.errors import RunError

if TYPE_CHECKING:
    from explorer.execute.stages import CutModel
    from explorer.execute.tasks import Task


def check_devices(n_ranks: int, device: torch.device) -> None:
    """Refuse more ranks than there are devices: nccl has one rank on each.

    Raises:
        RunError: naming both numbers.
    """
    if device.type == "cuda" and n_ranks > torch.cuda.device_count():
        raise RunError(
            f"ranks in processes have a GPU each; got {n_ranks} ranks and {torch.cuda.device_count()} GPUs; try "
            'backend="kernel", or the model on the CPU'
        )


def whereabouts(model: Any) -> torch.device:
    """Where a caller's model is, a module or a list of layers; one without parameters is on the CPU."""
    parts = model if isinstance(model, (list, tuple)) else [model]
    parameters = (parameter for part in parts if isinstance(part, nn.Module) for parameter in part.parameters())
    return next((parameter.device for parameter in parameters), torch.device("cpu"))


def device_of(rank: int, device: torch.device) -> torch.device:
    """Where a rank works when the caller's model is on `device`."""
    return torch.device("cuda", rank) if device.type == "cuda" else device


def backend_of(device: torch.device) -> str:
    """What carries messages between ranks on such devices."""
    return "nccl" if device.type == "cuda" else "gloo"


@contextlib.contextmanager
def on_host(model: CutModel) -> Iterator[None]:
    """A model's values are on the host, to be sent elsewhere, and back on its device afterwards."""
    device = model.device
    model.whole.to("cpu")
    try:
        yield
    finally:
        model.whole.to(device)


def settle(task: Task, place: int | None = None) -> torch.device:
    """Move a rank's part of the model and of the batch to its device: of this number, or of the rank's."""
    device = device_of(task.rank if place is None else place, task.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        task.model.whole.to(device)
        task.job.inputs[:] = [tuple(value.to(device) for value in values) for values in task.job.inputs]
        if task.job.targets is not None:
            task.job.targets[:] = [target.to(device) for target in task.job.targets]
    return device
