"""What a run changes in its process, and puts back: threads, garbage collection, random numbers; one run at a time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import random
import sys
import threading
from collections.abc import Iterator

import torch

from explorer.errors import RunError

_running = threading.Lock()
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_SHORT = 0.0002  # seconds another thread may hold the interpreter while an operation wants to go on
_LARGEST = 32 * 2**20  # bytes; glibc accepts no more


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One run at a time: threads, garbage collection and torch's default group belong to the process.

    Raises:
        RunError: if another run is under way; a second one is refused, it does not wait.
    """
    if not _running.acquire(blocking=False):
        raise RunError("a process executes one run at a time; another one is under way; stop it or wait for its end")
    try:
        yield
    finally:
        _running.release()


@contextlib.contextmanager
def measured() -> Iterator[None]:
    """One torch thread, gradients on, other threads kept short; all but the memory thresholds put back afterwards.

    With two threads on shared cores the same operation varies by 17–137 %, with one by 7–14 %. Python's own threads
    (a kernel that answers another cell) may hold the interpreter for 5 ms, longer than many an operation.
    """
    keep_memory()
    threads, interval = torch.get_num_threads(), sys.getswitchinterval()
    torch.set_num_threads(1)
    sys.setswitchinterval(_SHORT)
    try:
        with random_state_kept(), torch.enable_grad(), casts_afresh():
            yield
    finally:
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)


@contextlib.contextmanager
def random_state_kept() -> Iterator[None]:
    """Torch's and Python's random numbers go on afterwards as if nothing had happened."""
    ours = random.getstate()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(ours)


@contextlib.contextmanager
def casts_afresh() -> Iterator[None]:
    """Where autocast is on, it keeps no cast weights: kept ones outlive an update, and a step trains on old ones."""
    with contextlib.ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                cast = torch.autocast(kind, dtype=torch.get_autocast_dtype(kind), cache_enabled=False)
                stack.enter_context(cast)
        yield


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection within a step: it would be counted as somebody's forward."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def keep_memory() -> bool:
    """Ask glibc to keep freed memory, for the rest of the process; whether it took the request.

    Else it gives activations back to the system and faults them in again, 4–5 ms of a 12 ms forward. It cannot be
    read and so not be put back; other C libraries are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, _NEVER)) and bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST))
