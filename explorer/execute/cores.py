"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds it may compute in each of so many, or "max"


def n_cores() -> int:
    """Cores that this process may use at once, by its affinity and its container's quota; at least 1."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(int(min(own, quota(_QUOTA))), 1)


def quota(file: Path) -> float:
    """Cores that a container may use at once on average; infinity where nothing limits it."""
    try:
        most, period = file.read_text().split()
        return int(most) / int(period)
    except (OSError, ValueError):
        return math.inf
