"""Finding out how far the clocks of a pipeline's ranks are apart, over their own process group.

Processes on one machine read one monotonic clock. Where there are several machines, each rank sends rank 0 a question
and notes when the answer is there, again and again; the shortest round trip bounds the offset (explorer.core.clocks).

Questions are asked only once all ranks have said, in the group's store, that they are listening: who records on one
rank alone waits for a limited time and goes on unaligned, and no message of his training is ever mistaken for ours.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

import torch

from explorer.core.clocks import SAME_CLOCK, ClockOffset, RoundTrip, offset_of
from explorer.execute.stamps import clock_name

PATIENCE = timedelta(seconds=30)  # for the other ranks to begin recording
_TRIPS = 100
_GO, _STAY = "go", "stay"


def default_store() -> Any | None:
    """The store by which the processes of this job found each other, or None."""
    home: Any = torch.distributed.distributed_c10d
    getter = getattr(home, "_get_default_store", None)
    distributed: Any = torch.distributed
    return getter() if getter is not None and distributed.is_initialized() else None


def find_offset(group: Any, device: torch.device) -> ClockOffset | None:
    """How far this rank's clock is ahead of that of the group's rank 0; None if the others do not take part.

    Every rank of the group calls it, as every rank opens a recording.
    """
    distributed: Any = torch.distributed
    ranks = distributed.get_process_group_ranks(group)
    one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE") is not None
    if len(ranks) == 1 or one_machine:
        return SAME_CLOCK
    store = default_store()
    if store is None:
        return None
    names = _names(store, ranks, distributed.get_rank())
    if names is None:
        return None
    return SAME_CLOCK if len(set(names)) == 1 else _measured(group, device)


def _names(store: Any, ranks: list[int], own: int) -> list[str] | None:
    """The clock of each rank, or None if not all have come; all ranks get the same answer."""
    root = "explorer_clocks/" + "_".join(map(str, ranks))
    try:
        root += f"/{store.add(f'{root}/{own}', 1)}"  # how often this one has asked
        store.set(f"{root}/{own}", clock_name())
        keys = [f"{root}/{rank}" for rank in ranks]
        try:
            store.wait(keys, PATIENCE)
            wish = _GO
        except RuntimeError:  # of time that has run out
            wish = _STAY
        # the first to say decides for all
        decided = store.compare_set(f"{root}/decided", "", wish).decode()
        return [store.get(key).decode() for key in keys] if decided == _GO else None
    except (RuntimeError, NotImplementedError):  # a store that is gone, or cannot compare
        return None


def _measured(group: Any, device: torch.device) -> ClockOffset:
    """Ask rank 0, or answer each of the others in turn."""
    distributed: Any = torch.distributed
    ranks, own = distributed.get_process_group_ranks(group), distributed.get_rank()
    if own != ranks[0]:
        return offset_of([_ask(group, ranks[0], device) for _ in range(_TRIPS)])
    for other in ranks[1:]:
        for _ in range(_TRIPS):
            _answer(group, other, device)
    return SAME_CLOCK


def _ask(group: Any, other: int, device: torch.device) -> RoundTrip:
    distributed: Any = torch.distributed
    times = torch.zeros(2, dtype=torch.float64, device=device)
    sent = time.perf_counter()
    distributed.send(times, other, group=group)
    distributed.recv(times, other, group=group)
    reached, answered = times.tolist()  # on a device, this waits for them
    return RoundTrip(sent, reached, answered, time.perf_counter())


def _answer(group: Any, other: int, device: torch.device) -> None:
    distributed: Any = torch.distributed
    times = torch.zeros(2, dtype=torch.float64, device=device)
    distributed.recv(times, other, group=group)
    if device.type == "cuda":
        torch.cuda.synchronize()
    reached = time.perf_counter()
    distributed.send(
        torch.tensor([reached, time.perf_counter()], dtype=torch.float64, device=device), other, group=group
    )
