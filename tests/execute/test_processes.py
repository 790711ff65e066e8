"""Ranks in processes of their own: right, apart from each other, on loopback alone, and gone afterwards."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Kind, Origin, Stream
from explorer.errors import InputError, ModelError, ProgramError, RunError, RunStopped
from explorer.execute.keeper import keeper, prepare

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

WIDTH = 8
SOON = 3.0  # seconds within which nothing of a failed run is left


def squared(outputs, targets):
    return (outputs - targets).square().mean()


def execute(program, layers, batch, **more):
    return ex.execute(program, layers, batch, loss=squared, backend="processes", **more)


def children(pid: int) -> set[int]:
    """Of all threads of a process, and theirs, dead ones left out."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(stat.parent.name))
    return found.union(*map(children, found))


def listeners() -> list[str]:
    """The addresses on which this process listens, as the kernel's table has them."""
    inodes = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            inodes.add(str(link.readlink()))
        except OSError:
            continue
    addresses = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:  # 0A is LISTEN
                words = bytes.fromhex(fields[1].partition(":")[0])
                packed = b"".join(
                    struct.pack(">I", *struct.unpack("<I", words[k : k + 4])) for k in range(0, len(words), 4)
                )
                addresses.append(socket.inet_ntop(family, packed))
    return addresses


class Witness(nn.Module):
    """Remembers its process, on how many sockets that listens, and on how many of them beyond loopback."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))

    def forward(self, x):
        own = listeners()
        with torch.no_grad():
            self.seen[:] = torch.tensor([os.getpid(), len(own), sum(one != "127.0.0.1" for one in own)])
        return self.inner(x)


class Trouble(nn.Module):
    """Does something at its n-th forward of a run's copy; before the run, shapes are tried out by one."""

    def __init__(self, at: int, what) -> None:
        super().__init__()
        self.inner, self.at, self.what, self.calls = nn.Linear(WIDTH, WIDTH), at, what, 0

    def forward(self, x):
        self.calls += 1
        if self.calls == self.at:
            self.what()
        return self.inner(x)


def blow() -> None:
    raise KeyError("a fuse has blown")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Slow(nn.Linear):
    def forward(self, x):
        time.sleep(0.02)
        return super().forward(x)


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v"])
def test_losses_and_gradients_equal_the_unpipelined_models(name, n_ranks, batch, make_layers, sgd):
    program = ex.schedule(name, n_ranks=n_ranks, n_micro_batches=8)
    layers = make_layers(program.n_stages)
    run = execute(program, layers, batch, optimizer=sgd, n_steps=3)
    assert run.parity
    kernel = ex.execute(program, layers, batch, loss=squared, optimizer=sgd, n_steps=3)
    assert run.losses == pytest.approx(kernel.losses, rel=1e-5)
    assert run.gradients.keys() == kernel.gradients.keys()


def forker() -> int:
    return keeper().start().pid


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(2)


def test_a_rerun_with_other_numbers_finds_its_processes_there(batch, make_layers):
    pids = []
    for name, n_ranks, n_micro_batches in [("1f1b", 3, 4), ("gpipe", 2, 8), ("zb_h1", 3, 8), ("1f1b", 3, 4)]:
        program = ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches)
        run = execute(program, make_layers(n_ranks), batch)
        assert run.parity
        pids.append(children(forker()))
    assert len(pids[0]) >= 3
    assert pids == [pids[0]] * 4
    assert run.started.is_warm
    assert str(run.started).startswith("started warm in ")


def test_more_ranks_than_before_have_only_what_is_lacking_made_anew(batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    keeper().end_idle()
    first = execute(program, make_layers(2), batch)
    before = children(forker())
    more = execute(ex.schedule("1f1b", n_ranks=3, n_micro_batches=4), make_layers(3), batch)
    assert (first.started.n_forked, more.started.n_forked) == (2, 1)
    assert str(more.started).endswith("s: 1 of 3 processes were new")
    assert before < children(forker())


def test_a_module_that_was_edited_is_not_the_one_that_workers_know(batch, make_layers, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_layer.py"
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    header = "from torch.nn import Linear\n\nclass Scaled(Linear):\n"
    for factor in (1, 3):
        file.write_text(f"{header}    def forward(self, x):\n        return {factor} * x * self.bias\n")
        sys.modules.pop("edited_layer", None)
        importlib.invalidate_caches()
        layer = importlib.import_module("edited_layer").Scaled(WIDTH, WIDTH)
        assert execute(program, [*make_layers(1), layer], batch).parity


def test_every_rank_is_a_process_of_its_own_that_listens_on_loopback_alone(batch):
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=4)
    run = execute(program, [Witness() for _ in range(4)], batch)
    seen = torch.stack([run.state_dict()[f"{stage}.seen"] for stage in range(4)])
    assert len(set(seen[:, 0].tolist()) - {os.getpid()}) == 4
    assert (seen[:, 1] > 0).all()  # else the next line says nothing
    assert not seen[:, 2].any()


def test_dropout_and_batch_statistics_are_those_of_the_reference(batch, sgd):
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Dropout(0.5)) for _ in range(2)]
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    run = execute(program, layers, batch, optimizer=sgd, n_steps=2)
    assert run.parity
    assert int(run.state_dict()["0.1.num_batches_tracked"]) == 2 * 4  # the warm-up's are taken back


def test_a_forward_only_program_gives_outputs(batch, make_layers):
    program = ex.schedule("forward_only", n_ranks=2, n_micro_batches=4)
    layers = make_layers(2)
    run = ex.execute(program, layers, batch[0], backend="processes")
    assert run.parity
    assert torch.allclose(run.outputs, nn.Sequential(*layers)(batch[0]))


def test_the_trace_is_on_the_ranks_real_clock(batch, sgd):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    run = execute(program, [Slow(WIDTH, WIDTH) for _ in range(2)], batch, optimizer=sgd, n_steps=2)
    trace, events = run.trace, run.trace.events
    assert trace.clock == "real"
    assert trace.steps == [0, 1]
    compute = events.take((events.stream == Stream.COMPUTE) & (events.kind != Kind.U))
    assert len(compute) == 2 * program.n_actions
    assert (compute.origin == Origin.MEASURED).all()
    forward = compute.take(compute.kind == Kind.F)
    assert (forward.end - forward.start > 0.02).all()
    sends, receives = (events.take(events.stream == stream) for stream in (Stream.SEND, Stream.RECEIVE))
    assert len(sends) == len(receives) == 2 * 2 * 4  # steps, directions, micro-batches
    assert (sends.bytes == 4 * WIDTH * 4).all()  # rows, columns, bytes of a float32
    assert (sends.end >= sends.start).all()
    first = receives.take((receives.micro_batch == 0) & (receives.kind == Kind.RECV_F) & (receives.step == 1))
    assert first.wait[0] > 0.01  # rank 1 waits while rank 0 computes its first forward
    assert run.predicted.makespan == pytest.approx(trace.makespan, rel=0.5)
    _no_action_begins_before_what_it_needs(compute)


def _no_action_begins_before_what_it_needs(compute):
    times = zip(compute.step, compute.kind, compute.stage, compute.micro_batch, compute.start, compute.end, strict=True)
    at = {tuple(int(value) for value in key): (start, end) for *key, start, end in times}
    for (step, kind, stage, micro_batch), (start, _) in at.items():
        if kind == Kind.F and stage:
            assert start >= at[step, Kind.F, stage - 1, micro_batch][1]
        if kind == Kind.B and not stage:
            assert start >= at[step, Kind.B, 1, micro_batch][1]


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


def test_what_cannot_travel_is_refused(batch, make_layers):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    lock = Trouble(0, None)
    lock.what = (value for value in ())  # a generator lives in one process
    lock.__class__.__deepcopy__ = lambda self, memo: self
    try:
        with pytest.raises(ModelError, match=r"must be sent there; the model cannot be: .*generator.*kernel"):
            execute(program, [lock, *make_layers(1)], batch)
    finally:
        del lock.__class__.__deepcopy__


@pytest.mark.parametrize("argument", ["links", "clock"])
def test_a_link_model_or_a_clock_is_refused(argument, program, batch, make_layers):
    given = {"links": ex.Costs(), "clock": time.perf_counter}[argument]
    with pytest.raises(InputError, match=f"links and a clock of their own.*got {argument}") as caught:
        execute(program, make_layers(2), batch, **{argument: given})
    assert caught.value.argument == argument


def test_two_copies_of_a_stage_are_refused(batch, make_layers):
    program = ex.schedule("dualpipe", n_ranks=2, n_micro_batches=4)
    with pytest.raises(ProgramError, match="one weight copy a stage"):
        execute(program, make_layers(program.n_stages), batch)


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
