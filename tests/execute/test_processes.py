"""Ranks in processes of their own: right, apart from each other, on loopback alone, and gone afterwards."""

from __future__ import annotations

import importlib
import os
import socket
import struct
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Kind, Origin, Stream
from explorer.errors import InputError, ModelError, ProgramError
from explorer.execute.keeper import keeper, prepare
from tests.execute.ranks import WIDTH, Slow, Trouble, children, execute, forker, squared

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]


@pytest.mark.parametrize(("name", "n_ranks"), [("1f1b", 4), ("interleaved_1f1b", 2), ("zb_v", 2)])
def test_losses_and_gradients_equal_the_unpipelined_models(name, n_ranks, batch, make_layers, sgd):
    program = ex.schedule(name, n_ranks=n_ranks, n_micro_batches=8)
    layers = make_layers(program.n_stages)
    run = execute(program, layers, batch, optimizer=sgd, n_steps=3)
    assert run.parity
    kernel = ex.execute(program, layers, batch, loss=squared, optimizer=sgd, n_steps=3)
    assert run.losses == pytest.approx(kernel.losses, rel=1e-5)
    assert run.gradients.keys() == kernel.gradients.keys()


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


class Own(nn.Module):
    """No sequence of layers: torch's tracer cuts it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def test_a_file_is_no_model(batch, tmp_path):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    torch.save(Own(), tmp_path / "model.pt")
    for file in (tmp_path / "model.pt", str(tmp_path / "model.pt")):
        with pytest.raises(ModelError, match=r"a file may hold code that runs when it is read.*weights_only=True"):
            execute(program, file, batch)


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
