"""What a model does that makes it depend on how its batch is cut, seen by watching one forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from explorer.execute.stages import CutModel


class Traits(NamedTuple):
    """Whether a model's forward draws random numbers, and whether it looks at the batch as a whole."""

    random: bool
    statistics: bool


def watch_traits(model: CutModel) -> Callable[[], Traits]:
    """Remember random state and buffers now; what is returned tells how they differ, and puts the buffers back.

    Batch normalisation is also known by its type: without running statistics it changes no buffer.
    """
    before = _random_state(model)
    buffers = {buffer: buffer.detach().clone() for stage in model.stages for buffer in stage.buffers()}

    def traits() -> Traits:
        drawn = any(not torch.equal(a, b) for a, b in zip(before, _random_state(model), strict=True))
        changed = any(not torch.equal(buffer, old) for buffer, old in buffers.items())
        with torch.no_grad():
            for buffer, old in buffers.items():
                buffer.copy_(old)
        return Traits(drawn, changed or any(map(_normalises_batch, model.whole.modules())))

    return traits


def _random_state(model: CutModel) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if model.device.type == "cuda":
        states.append(torch.cuda.get_rng_state(model.device))
    return states


def _normalises_batch(module: nn.Module) -> bool:
    known = isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm))
    return known and (module.training or module.running_mean is None)
