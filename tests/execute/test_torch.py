"""The private parts of torch, and the group made for a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch.distributed.pipelining.schedules as schedules
from torch.distributed.pipelining.stage import PipelineStage

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
    assert all(address in ("0100007F", "00000000000000000000000001000000") for address in listening)


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
