"""Of processes that torchrun has started, the first speaks for all that say the same.

An error of one process alone is still told by that process: what all say is found by asking, in the store by which
torchrun's processes meet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

_SECONDS = 10.0  # in which the first process has spoken, or has something else to do
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def is_started_by_torchrun(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is one of several that torchrun has started."""
    return all(name in environment for name in _NEEDED)


def is_told_by_first(message: str, environment: Mapping[str, str] = os.environ, *, seconds: float = _SECONDS) -> bool:
    """Whether this process can be silent, for the first has the same to say; the first itself never can.

    Every process calls it before it says `message`.
    """
    if not is_started_by_torchrun(environment) or environment["WORLD_SIZE"] == "1":
        return False
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return False  # the store is in the first process, and ends with it
    try:
        store = _store(environment, timedelta(seconds=seconds))
        key = f"explorer_said/{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        if environment["RANK"] == "0":
            store.set(key, message)
            return False
        store.wait([key], timedelta(seconds=seconds))
        return bool(store.get(key).decode() == message)
    except (ImportError, RuntimeError, ValueError):
        return False  # nobody to ask, or no answer


def _store(environment: Mapping[str, str], limit: timedelta) -> Any:
    import torch

    distributed: Any = torch.distributed
    place = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    return distributed.TCPStore(*place, is_master=False, timeout=limit)
