"""However a run in processes ends, it says of what, soon, and leaves no process behind."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import explorer as ex
from explorer.errors import InputError, RunError, RunStopped
from explorer.execute.keeper import keeper, prepare
from tests.execute.ranks import SOON, WIDTH, Slow, Trouble, blow, children, die, execute, forker

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(2)


@pytest.mark.parametrize("stage", [0, 1])
def test_an_error_in_a_layer_names_rank_stage_and_action_and_ends_all(stage, batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    layers = make_layers(2)
    layers[stage] = Trouble(1 + 4 + 6, blow)  # tried out once, warmed up by four; the sixth is 0's third of step 1
    execute(program, make_layers(2), batch)
    begin = time.monotonic()
    with pytest.raises(
        RunError, match=rf"{stage}F1 .*stage {stage} on rank {stage}, step 1\) failed in layer {stage}: KeyErr"
    ):
        execute(program, layers, batch, n_steps=3)
    assert time.monotonic() - begin < SOON
    assert not children(forker())
    assert execute(program, make_layers(2), batch).parity


def test_a_worker_that_is_killed_is_named(batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    begin = time.monotonic()
    with pytest.raises(RunError, match=r"rank 1 was ended by SIGKILL in step 1"):
        execute(program, [*make_layers(1), Trouble(1 + 4 + 6, die)], batch, n_steps=3)
    assert time.monotonic() - begin < SOON
    assert not children(forker())


class Killer(ex.Hook):
    """Sends one worker a signal so many seconds after the run's first report."""

    def __init__(self, pid: int, seconds: float, number: int = signal.SIGKILL) -> None:
        self._timer = threading.Timer(seconds, os.kill, [pid, number])

    def started(self, event):
        self._timer.start()


@pytest.mark.parametrize("seed", range(4))
def test_a_worker_killed_at_any_moment_is_named_and_the_next_run_works(seed, batch, make_layers):
    """From outside, whatever it is doing: computing, waiting, or telling of it."""
    program = ex.schedule("zb_h1", n_ranks=3, n_micro_batches=4)
    execute(program, make_layers(3), batch)
    dice = random.Random(seed)
    rank, seconds = dice.randrange(3), dice.uniform(0.0, 0.6)
    killer = Killer(keeper().idle_pids[rank], seconds)
    begin = time.monotonic()
    with pytest.raises(RunError, match=rf"rank {rank} was ended by SIGKILL (while warming up|in step \d+)"):
        execute(program, [Slow(WIDTH, WIDTH) for _ in range(3)], batch, n_steps=1000, hooks=[killer])
    assert time.monotonic() - begin < seconds + SOON
    assert not children(forker())
    assert execute(program, make_layers(3), batch).parity


def test_a_worker_that_died_between_two_runs_is_not_used_again(batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    execute(program, make_layers(2), batch)
    os.kill(keeper().idle_pids[1], signal.SIGKILL)
    run = execute(program, make_layers(2), batch)
    assert run.parity
    assert run.started.n_forked == 2


def sleep() -> None:
    time.sleep(1000)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_rank_that_hangs_is_named_and_not_those_that_wait_for_it(rank, batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=3, n_micro_batches=4)
    layers = make_layers(3)
    layers[rank] = Trouble(1 + 4 + 3, sleep)  # its third forward
    execute(program, make_layers(3), batch)
    with pytest.raises(RunError) as caught:
        execute(program, layers, batch, timeout=2.0)
    said = str(caught.value)
    where = rf"the others wait for rank {rank}, in step 0, after {rank}\w+, before {rank}F2; look for a loop or a lock"
    assert re.search(rf"none has been heard of for 2 s, {where}.*more than timeout=2", said), said
    assert not children(forker())


def test_a_stopped_process_is_a_hang_like_any_other(batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    execute(program, make_layers(2), batch)
    stopper = Killer(keeper().idle_pids[0], 0.3, signal.SIGSTOP)
    with pytest.raises(RunError, match=r"none has been heard of for 2 s, .*rank 0"):
        execute(program, [Slow(WIDTH, WIDTH) for _ in range(2)], batch, n_steps=1000, timeout=2.0, hooks=[stopper])
    assert not children(forker())


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), "30", True])
def test_a_limit_that_is_none_is_refused(timeout, batch, make_layers, program):
    with pytest.raises(InputError, match=r"timeout is a number of seconds.*try 30") as caught:
        execute(program, make_layers(2), batch, timeout=timeout)
    assert caught.value.argument == "timeout"


class Interrupting(ex.Hook):
    def slot_start(self, event):
        if event.step == 1:
            raise KeyboardInterrupt


class Stopping(ex.Stop):
    def step_start(self, event):
        if event.step == 1:
            self.set()


@pytest.mark.parametrize(("hook", "error"), [(Interrupting(), KeyboardInterrupt), (Stopping(), RunStopped)])
def test_an_interrupt_and_a_stop_leave_no_worker(hook, error, batch):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    begin = time.monotonic()
    with pytest.raises(error):
        execute(program, [Slow(WIDTH, WIDTH), Slow(WIDTH, WIDTH)], batch, n_steps=1000, hooks=[hook])
    assert time.monotonic() - begin < SOON
    assert not children(forker())


SCRIPT = """
import time
import torch
from torch import nn
import explorer as ex

print("the user's own lines", flush=True)
FACTOR = 0.5

def scaled(x):
    return FACTOR * x

class Block(nn.Module):
    def __init__(self, pause):
        super().__init__()
        self.inner, self.pause = nn.Linear(4, 4), pause

    def forward(self, x):
        time.sleep(self.pause)
        return scaled(self.inner(x))

def run(pause, n_steps):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    batch = torch.randn(4, 4), torch.randn(4, 4)
    return ex.execute(
        program, [Block(pause), Block(pause)], batch, loss=lambda o, t: (o - t).square().mean(), n_steps=n_steps,
        optimizer=lambda p: torch.optim.SGD(p, lr=0.1), backend="processes",
    )

print(run(0, 2).parity, flush=True)
run(0.05, 10_000)
"""


def test_classes_of_a_script_travel_it_runs_but_once_and_its_sudden_death_leaves_no_worker(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(SCRIPT)
    path = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as script:
        assert script.stdout is not None
        assert [script.stdout.readline() for _ in range(2)] == ["the user's own lines\n", "True\n"]
        limit = time.monotonic() + SOON
        while len(there := children(script.pid)) < 3 and time.monotonic() < limit:
            time.sleep(0.05)
        assert len(there) == 3  # what forks, and two ranks
        time.sleep(0.3)
        script.kill()
        assert not script.stdout.read()
    limit = time.monotonic() + SOON
    while any(map(_lives, there)) and time.monotonic() < limit:
        time.sleep(0.02)
    assert not any(map(_lives, there))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
