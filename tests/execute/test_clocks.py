"""Two ranks whose clocks are a thousand seconds apart, as those of two machines are."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import explorer as ex
from explorer.errors import InputError

pytestmark = pytest.mark.slow

AHEAD = 1000  # seconds
LIMIT = 120

SCRIPT = """
import sys, torch, torch.distributed as dist, explorer as ex
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
dist.init_process_group("gloo")
rank = dist.get_rank()
stage = PipelineStage(torch.nn.Linear(8, 8), rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(stage, 4, loss_fn=lambda output, target: (output - target).square().mean())
with ex.record(sys.argv[1], schedule):
    for _ in range(2):
        schedule.step(*((torch.ones(8, 8),) if rank == 0 else ()), target=torch.ones(8, 8))
dist.destroy_process_group()
"""


def with_clock(ahead: int) -> list[str]:
    """A command for a process whose monotonic clock is so many seconds ahead of this machine's."""
    return ["unshare", "--time", "--monotonic", str(ahead), "--fork"]


def can_set_clocks() -> bool:
    try:
        return subprocess.run([*with_clock(1), "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not can_set_clocks():
        pytest.skip("needs the right to make time namespaces")
    made = tmp_path_factory.mktemp("clocks")
    (made / "train.py").write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [
        subprocess.Popen(
            [*with_clock(rank * AHEAD), sys.executable, made / "train.py", made],
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    try:
        assert [rank.wait(timeout=LIMIT) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
    return made


def test_the_true_offset_is_within_the_measured_interval(folder):
    trace = ex.load(folder)
    own, other = trace.clock_offsets
    assert own == (0.0, 0.0, 0.0)
    assert other.low <= AHEAD <= other.high
    assert other.high - other.low < 1.0
    assert trace.makespan < AHEAD  # on one clock


def test_clocks_are_compared_when_a_recording_begins_and_when_it_ends(folder):
    lines = [json.loads(line) for line in (folder / "rank-00001.jsonl").read_text().splitlines()]
    assert ["clock" in line and "step" not in line for line in lines[1:]] == [True, False, False, True]


def rewritten(folder: Path, target: Path, seconds: float | None) -> Path:
    """The recording with rank 1's clock said to be so far ahead, and surely; None: not compared at all."""
    for path in folder.glob("rank-*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines[1:]:
            if "clock" in line and path.name == "rank-00001.jsonl":
                known = {"time": 0, "seconds": seconds, "low": seconds, "high": seconds}
                line["clock"] = None if seconds is None else known
        (target / path.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return target


def test_an_offset_that_the_order_of_messages_contradicts_is_refused(folder, tmp_path):
    message = r"from rank 0 to rank 1 was there \d{7} µs before, and the two are known to 0 µs; .* record again"
    with pytest.raises(InputError, match=message):
        ex.load(rewritten(folder, tmp_path, AHEAD + 9.0))  # then rank 1 seems to receive nine seconds too early


def test_clocks_that_were_not_compared_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"compare their clocks when a recording begins; rank-00001\.jsonl could not"):
        ex.load(rewritten(folder, tmp_path, None))


def test_a_missing_rank_is_named_with_its_file(folder, tmp_path):
    rewritten(folder, tmp_path, float(AHEAD))
    (tmp_path / "rank-00000.jsonl").unlink()
    with pytest.raises(InputError, match=r"a file for each of 2 ranks; rank-00000\.jsonl is missing from"):
        ex.load(tmp_path)


def test_files_of_two_runs_are_told_apart(folder, tmp_path):
    rewritten(folder, tmp_path, float(AHEAD))
    text = (tmp_path / "rank-00001.jsonl").read_text()
    run = json.loads(text.splitlines()[0])["run"]
    (tmp_path / "rank-00001.jsonl").write_text(text.replace(f'"run": "{run}"', '"run": "another"'))
    with pytest.raises(InputError, match=r"got rank-00000\.jsonl and rank-00001\.jsonl of different ones \(run\)"):
        ex.load(tmp_path)
