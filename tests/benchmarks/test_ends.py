"""Twenty runs for each way in which one may end before its time, at random moments: named soon, nothing left behind.

pytest -m benchmark tests/benchmarks/test_ends.py; tests/execute/test_processes_ends.py tries a few of each.
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import RunError
from explorer.execute.keeper import keeper, prepare
from tests.execute.ranks import WIDTH, Slow, children, execute, forker

pytestmark = [pytest.mark.benchmark, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]

N_TIMES, N_RANKS, N_MICRO_BATCHES = 20, 3, 4
LIMIT = 5.0  # seconds within which a run's end is named, and all of its processes are gone
MANY = 10_000  # steps; no run gets that far
PROGRAM = ex.schedule("zb_h1", n_ranks=N_RANKS, n_micro_batches=N_MICRO_BATCHES)


class _Blow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.layer.count("backward")
        return gradient, None


class Fuse(nn.Module):
    """Raises in its n-th forward or backward; one forward, which tries shapes out, comes before a run."""

    def __init__(self, way: str, at: int) -> None:
        super().__init__()
        self.inner, self.way, self.at = nn.Linear(WIDTH, WIDTH), way, at

    def count(self, way: str) -> None:
        self.at -= way == self.way
        if not self.at:
            raise KeyError("a fuse has blown")

    def forward(self, x):
        self.count("forward")
        return _Blow.apply(self.inner(x), self).tanh()


class At(ex.Hook):
    """Does something as the n-th slot of a run is told of, whichever rank's it is."""

    def __init__(self, slot: int, what: Callable[[], None]) -> None:
        self.left, self.what, self.since = slot, what, 0.0

    def slot_end(self, event):
        self.left -= 1
        if not self.left:
            self.since = time.monotonic()
            self.what()


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(N_RANKS)


@pytest.fixture
def batch():
    return torch.randn(2 * N_MICRO_BATCHES, WIDTH), torch.randn(2 * N_MICRO_BATCHES, WIDTH)


def slow() -> list[nn.Module]:
    return [Slow(WIDTH, WIDTH) for _ in range(N_RANKS)]


def nothing_is_left(batch) -> bool:
    """Whether no worker is, and the next run is right."""
    left = children(forker()) - set(keeper().idle_pids)
    return not left and bool(execute(PROGRAM, [nn.Linear(WIDTH, WIDTH) for _ in range(N_RANKS)], batch).parity)


def row(took: list[float]) -> dict[str, float]:
    return {"times": len(took), "median s": statistics.median(took), "worst s": max(took)}


def test_a_worker_killed_at_a_random_action_is_named(table, batch):
    dice, took = random.Random(1), []
    for _ in range(N_TIMES):
        execute(PROGRAM, slow(), batch)
        rank, pids = dice.randrange(N_RANKS), keeper().idle_pids
        killing = At(dice.randint(1, 3 * PROGRAM.n_slots), lambda pid=pids[rank]: os.kill(pid, signal.SIGKILL))
        with pytest.raises(RunError, match=rf"rank {rank} was ended by SIGKILL in step [0-3], (after|before) {rank}"):
            execute(PROGRAM, slow(), batch, n_steps=MANY, hooks=[killing])
        took.append(time.monotonic() - killing.since)
        assert not any(map(is_there, pids))
        assert nothing_is_left(batch)
    table("a worker killed", row(took))
    assert max(took) < LIMIT


def test_an_error_at_a_random_action_is_named(table, batch):
    dice, took = random.Random(2), []
    for _ in range(N_TIMES):
        execute(PROGRAM, slow(), batch)
        rank, layers, pids = dice.randrange(N_RANKS), slow(), keeper().idle_pids
        layers[rank] = Fuse(dice.choice(["forward", "backward"]), dice.randint(2, 4 * N_MICRO_BATCHES))
        begin = time.monotonic()
        with pytest.raises(RunError, match=rf"rank {rank}\b.*a fuse has blown") as caught:
            execute(PROGRAM, layers, batch, n_steps=MANY)
        took.append(time.monotonic() - begin)  # with the run until then
        assert re.search(rf"{rank}[FBIW][0-3] ", str(caught.value)), str(caught.value)
        assert not any(map(is_there, pids))
        assert nothing_is_left(batch)
    table("an error in a stage, and the run before", row(took))
    assert max(took) < LIMIT


def test_an_interrupt_at_a_random_moment_ends_all(table, batch):
    """From before the workers are asked for until after the first steps."""
    dice, took = random.Random(3), []
    for _ in range(N_TIMES):
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted(seconds := dice.uniform(0.0, 1.0), batch)
        took.append(time.monotonic() - begin - seconds)
        assert nothing_is_left(batch)
    table("an interrupt", row(took))
    assert max(took) < LIMIT


CALLER = """
import sys
from tests.benchmarks.test_ends import MANY, PROGRAM, slow
from tests.execute.ranks import WIDTH, execute
import torch
batch = torch.randn(8, WIDTH), torch.randn(8, WIDTH)
execute(PROGRAM, slow(), batch)
print("ready", flush=True)
sys.stdin.readline()
execute(PROGRAM, slow(), batch, n_steps=MANY)
"""


def test_a_caller_killed_at_a_random_moment_leaves_nothing(table):
    """Before a run has its workers, or up to some hundred steps later; whoever was begun for it bears its mark."""
    dice, took = random.Random(4), []
    for number in range(N_TIMES):
        mark = f"EXPLORER_CALLER={os.getpid()}.{number}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment.update([mark.split("=")])
        with subprocess.Popen(
            [sys.executable, "-c", CALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as caller:
            assert caller.stdin is not None
            assert caller.stdout is not None
            assert caller.stdout.readline() == "ready\n"
            caller.stdin.write("\n")
            caller.stdin.flush()
            time.sleep(dice.uniform(0.0, 1.0))
            assert len(marked(mark)) >= 1 + 1 + N_RANKS  # itself, what forks, and the ranks
            begin = time.monotonic()
            caller.kill()
        while marked(mark) and time.monotonic() < begin + LIMIT:
            time.sleep(0.02)
        took.append(time.monotonic() - begin)
        assert marked(mark) == set()
    table("the caller killed", row(took))


def marked(mark: str) -> set[int]:
    """The processes that have `mark` in their environment."""
    found = set[int]()
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in file.read_bytes().split(b"\0") and is_there(int(file.parent.name)):
                found.add(int(file.parent.name))
        except OSError:
            continue
    return found


def interrupted(seconds: float, batch) -> None:
    threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT]).start()
    execute(PROGRAM, slow(), batch, n_steps=MANY)


def is_there(pid: int) -> bool:
    """Whether it is, and is not just waiting for somebody to take its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
