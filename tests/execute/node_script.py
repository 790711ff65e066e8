"""Runs the command `explorer` as on a machine of its own, whose clock is 5 s ahead of that of the node before."""

from __future__ import annotations

import os
import sys
import time

from explorer.cli import main
from explorer.execute import clocks

_NODE = int(os.environ.get("GROUP_RANK", "0"))  # torchrun sets it
_own = time.perf_counter


def _ahead() -> float:
    return _own() + 5.0 * _NODE


def made():
    """A model, a batch and a loss, from the seed that is set."""
    import torch
    from torch import nn

    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)]
    batch = torch.randn(8, 8), torch.randn(8, 8)
    return layers, batch, lambda outputs, targets: (outputs - targets).square().mean()


if __name__ == "__main__":
    time.perf_counter = _ahead
    clocks.clock_name = lambda: f"node {_NODE}"
    sys.exit(main())
