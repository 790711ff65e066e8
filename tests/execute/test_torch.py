"""The private parts of torch, and the group made for a run."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest
import torch
import torch.distributed.pipelining.schedules as schedules
from torch.distributed.pipelining.stage import PipelineStage

import explorer as ex
from explorer.errors import EngineError
from explorer.execute._torch import one_rank_group, probe
from explorer.execute.settings import keep_memory


def test_a_missing_class_is_named(monkeypatch):
    monkeypatch.delattr(schedules, "_PipelineScheduleRuntime")
    with pytest.raises(
        EngineError, match=r"torch 2.12 or newer with .*schedules._PipelineScheduleRuntime; this is torch"
    ):
        probe()


def test_a_missing_method_is_named(monkeypatch):
    monkeypatch.delattr(PipelineStage.__mro__[1], "backward_weight_one_chunk")
    with pytest.raises(EngineError, match=r"PipelineStage.backward_weight_one_chunk"):
        probe()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel's table of sockets is Linux's")
def test_the_group_listens_on_loopback_alone():
    with one_rank_group():
        listening = _listening()
    assert listening
    assert set(listening) <= {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.parametrize("interface", ["of this machine", "of none"])
def test_the_group_listens_on_loopback_whatever_gloo_would_take(monkeypatch, interface):
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if interface == "of this machine" and not others:
        pytest.skip("this machine has no interface besides its loopback")
    chosen = others[0] if interface == "of this machine" else "none0"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", chosen)
    with one_rank_group():
        assert set(_listening()) <= {"0100007F", "00000000000000000000000001000000"}
    assert os.environ["GLOO_SOCKET_IFNAME"] == chosen


@pytest.mark.parametrize("listens", [True, False])
def test_a_profiler_of_the_user_still_sees_each_action(listens):
    model = ex.ready_model("mlp", n_stages=2, n_micro_batches=2)
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    listener = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True)  # 2.12 warns
    with listener if listens else contextlib.nullcontext():
        ex.execute(program, model.layers, model.batch, loss=model.loss, n_steps=1)
    assert schedules.record_function is torch.profiler.record_function
    if listens:
        seen = {event.key for event in listener.key_averages()}
        assert {"PP:0F0", "PP:1F0", "PP:0B1", "PP:1B1"} <= seen


@pytest.mark.skipif(not os.uname().sysname.startswith("Linux"), reason="mallopt is glibc's")
def test_glibc_takes_the_thresholds():
    import platform

    assert keep_memory() == (platform.libc_ver()[0] == "glibc")


def _listening() -> list[str]:
    """Addresses, in hexadecimal, on which this process listens."""
    links = Path("/proc/self/fd").iterdir()
    sockets = {str(link.readlink()) for link in links if link.is_symlink() and link.exists()}
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]
