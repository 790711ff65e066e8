"""Random numbers that every process draws alike."""

from __future__ import annotations

import torch


def seed_all(number: int) -> None:
    """Have torch begin its random numbers anew from `number`, on every device."""
    torch.manual_seed(number)
