"""Ranks that torchrun has started, here as two nodes on one machine: one run, one trace, one clock."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

import explorer as ex
from explorer.errors import InputError, ModelError, RunError
from explorer.execute import joined, kernel
from explorer.execute._torch_ranks import Parcel
from explorer.execute.events import Memory, SlotEnd, Updated
from explorer.execute.faults import Injected
from explorer.execute.wire import packed, unpacked
from tests.execute.ranks import squared

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("node_script.py")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def on_two_nodes(*words: str) -> list[tuple[int, str]]:
    """Exit status and words of the command on each of two nodes with one rank each."""
    port = free_port()
    paths = os.pathsep.join([str(SCRIPT.parent), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    begin = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    begin += ["--master-addr", "127.0.0.1", "--master-port", str(port), "--max-restarts", "0"]
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                subprocess.Popen(
                    [*begin, "--node-rank", str(node), str(SCRIPT), "execute", "--backend", "processes", *words],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
            for node in range(2)
        ]
        told = [node.communicate(timeout=150)[0] for node in nodes]
        return [(node.returncode, text) for node, text in zip(nodes, told, strict=True)]


def test_ranks_of_two_nodes_make_one_run_whose_trace_is_on_one_clock(tmp_path):
    file = tmp_path / "run.json.gz"
    words = ("--model", "node_script:made", "--ranks", "2", "--micro-batches", "4", "--steps", "2")
    fault = "delay_message action=0F1 seconds=0.1 step=1"
    saved = ("--checkpoint", str(tmp_path / "saved"), "--keep-last", "1")
    (first, said), (second, silent) = on_two_nodes(*words, *saved, "--fault", fault, "--output", str(file))
    assert (first, second) == (0, 0), said + silent
    assert "gradients equal those of one process" in said
    assert "loss" not in silent  # rank 0 speaks for all
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["step-00000002.safetensors"]
    trace = ex.load(file)
    assert trace.clock == "real"
    zero, one = trace.clock_offsets
    assert zero == (0.0, 0.0, 0.0)
    assert one.low <= 5.0 <= one.high
    assert one.high - one.low < 1.0
    assert [mark.text for mark in trace.marks] == [fault]
    for step in trace.steps:
        events = trace.step(step).events
        compute = events.take(np.isin(events.kind, (ex.Kind.F, ex.Kind.B)))
        assert len(compute) == trace.program.n_actions
        keys = list(zip(compute.kind.tolist(), compute.stage.tolist(), compute.micro_batch.tolist(), strict=True))
        start, end = (dict(zip(keys, times, strict=True)) for times in (compute.start, compute.end))
        for m in range(4):
            assert end[ex.Kind.F, 0, m] <= start[ex.Kind.F, 1, m] + one.high - one.low
            assert end[ex.Kind.B, 1, m] <= start[ex.Kind.B, 0, m] + one.high - one.low
        assert trace.step(step).makespan < 4.0  # no 5 s of a clock are left in it


class Crew:
    """Ranks that are not there: what this one tells is answered in their place."""

    group, rank, number = None, 0, 1


def called_as(theirs, monkeypatch, program, layers, batch):
    """Run as rank 0 of two, where rank 1 tells `theirs` of what this one tells."""
    crew = Crew()
    crew.decide = lambda what: what()
    monkeypatch.setattr(kernel, "joined", lambda n_ranks, model, seconds: nullcontext(crew))
    monkeypatch.setattr(joined, "exchanged", lambda ours, group: [ours, theirs(*ours)])
    ex.execute(program, layers, batch, loss=squared, backend="torchrun")


def test_ranks_that_made_another_model_are_refused_before_they_train(program, make_layers, batch, monkeypatch):
    with pytest.raises(ModelError, match=r"rank 1's differ from rank 0's; make both from one seed, as by torch.manual"):
        called_as(lambda called, made: [called, [*made[:-1], [[1], 0.0]]], monkeypatch, program, make_layers(2), batch)


def test_ranks_that_were_called_otherwise_are_refused_before_they_train(program, make_layers, batch, monkeypatch):
    with pytest.raises(InputError, match=r"call execute alike; rank 1 has n_steps=3, rank 0 1; give all the same"):
        called_as(lambda called, made: [{**called, "n_steps": 3}, made], monkeypatch, program, make_layers(2), batch)


class Board:
    """What the ranks' store is to a rank that fails."""

    def __init__(self):
        self.said = {}

    def set(self, key, value):
        self.said[key] = value.encode()

    def get(self, key):
        return self.said[key]

    def wait(self, keys, limit):
        if not set(keys) <= self.said.keys():
            raise RuntimeError("timeout")


def test_an_echo_gives_way_to_what_another_rank_has_failed_of(monkeypatch):
    board = Board()
    monkeypatch.setattr(joined, "default_store", lambda: board)
    crew, next_crew = Crew(), Crew()
    next_crew.number = 2
    echo = RunError("a step must run through; torch's runtime raised RuntimeError: Connection closed by peer")
    with pytest.raises(RunError, match="Connection closed by peer"):
        joined._fail(echo, crew)  # nobody knows better
    with pytest.raises(RunError, match="a fuse has blown"):
        joined._fail(RunError("1B2 failed: a fuse has blown"), crew)
    with pytest.raises(RunError, match=r"^1B2 failed: a fuse has blown$"):
        joined._fail(echo, crew)
    with pytest.raises(RunError, match="Connection closed by peer"):
        joined._fail(echo, next_crew)  # what the run before has failed of is none of this one's


def test_the_backend_needs_torchrun_and_says_so(program, make_layers, batch):
    with pytest.raises(InputError, match=r"processes that torchrun has started; this one was not; try torchrun --np"):
        ex.execute(program, make_layers(2), batch, loss=squared, backend="torchrun")


def test_as_many_processes_as_ranks_are_needed(program, make_layers, batch, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        InputError, match=r"a process for each rank; got 3 for 2 ranks; try 3 ranks, or nnodes"
    ) as caught:
        ex.execute(program, make_layers(2), batch, loss=squared, backend="torchrun")
    assert caught.value.legal == (3,)


def test_what_ranks_tell_each_other_comes_out_as_it_went_in():
    action = ex.Action(ex.Kind.F, 1, 2)
    rows = [
        SlotEnd(0, 1, 3, (action,), 0.5, 1.0, 1.5, ((1.0, 1.5),)),
        Memory(0, 3, True, 1, ex.Category.ACTIVATIONS, 1, 2, 64),
        Updated(0, 1, 1, 0.25, 2.0),
        Injected(0, 1, 3, ex.SlowRank(rank=1, factor=2.0), 1.25),
        Parcel(ex.Kind.SEND_F, 1, 2, 64, 1.5),
    ]
    tensor = torch.arange(6.0).reshape(2, 3)
    data, tensors = packed({"rows": rows, 3: (tensor, None, True)})
    waiting = iter(tensors)
    came = unpacked(data, lambda empty: empty.copy_(next(waiting)))
    assert repr(came["rows"]) == repr(rows)  # NaN is unlike itself
    assert torch.equal(came[3][0], tensor)
    assert came[3][1:] == (None, True)
