"""`explorer record -- …` attaches by itself, passes everything through, and `explorer convert` rewrites."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import explorer as ex
from explorer.cli import main
from explorer.cli.record import surroundings

pytestmark = pytest.mark.slow

TRAINING = """
import sys, torch, torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
assert "explorer.execute.recording" not in sys.modules
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for n_micro_batches in (2, 4):
    stage = PipelineStage(torch.nn.Linear(4, 4), 0, 1, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_micro_batches, loss_fn=lambda output, target: (output - target).square().mean())
    for _ in range(3):
        schedule.step(torch.ones(4, 4), target=torch.zeros(4, 4))
print("trained")
sys.exit(7)
"""


def record(*words, **more):
    command = [sys.executable, "-m", "explorer", "record", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)


def test_a_script_that_knows_nothing_of_it_is_recorded_and_its_status_passed_on(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    done = record("--output", "traces", "--", sys.executable, "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "trained\n"), done.stderr
    assert "explorer: 1 ranks are recorded in traces; `explorer convert traces run.json.gz` makes" in done.stderr
    first, second = ex.load(tmp_path / "traces"), ex.load(tmp_path / "traces" / "schedule-2")
    assert (first.program.n_micro_batches, second.program.n_micro_batches) == (2, 4)
    assert first.steps == second.steps == [0, 1, 2]
    again = record("--output", "traces", "--", sys.executable, "-c", "pass", cwd=tmp_path)
    assert again.returncode == 2
    assert "a folder without a recording; got 'traces', in which rank-00000.jsonl is" in again.stderr


def test_the_users_own_sitecustomize_is_run_and_nothing_heavy_is_loaded(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'yes'\n")
    code = "import os, sys; print(os.environ['SEEN'], 'torch' in sys.modules, 'explorer' in sys.modules)"
    environment = surroundings(tmp_path / "traces", {**os.environ, "PYTHONPATH": str(tmp_path)})
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "yes False False\n"


def test_a_command_without_a_schedule_says_so(tmp_path):
    done = record("--", sys.executable, "-c", "print(5)", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert "nothing is recorded: the command ran no step" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_command(tmp_path, number):
    code = (
        "import signal, sys, time, pathlib\n"
        "for n in (signal.SIGTERM, signal.SIGINT): signal.signal(n, lambda n, _: sys.exit(40 + n))\n"
        "pathlib.Path('ready').touch(); time.sleep(60)"
    )
    command = [sys.executable, "-m", "explorer", "record", "--", sys.executable, "-c", code]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        # a terminal tells the whole group of Ctrl-C; others tell the one process
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(timeout=60) == 40 + number
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["record"], "record runs the command that stands behind --; got none"),
        (["record", "--"], "got none; example: explorer record --output traces -- torchrun"),
        (
            ["record", "--output", "file", "--", "true"],
            "record writes to a folder; got 'file', which is a file; try an",
        ),
        (["record", "--output", "file/within", "--", "true"], "got 'file/within', which cannot be made (Not a dir"),
        (["record", "--output", "/proc/within", "--", "true"], "got '/proc/within', which cannot be made ("),
        (["record", "--", "no-such-command"], "got 'no-such-command' (No such file or directory)"),
        (["convert", "nowhere.json", "x.csv"], "got 'nowhere.json' (No such file or directory)"),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(words) == 2
    assert sentence in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_may_not_be_written_to_is_refused_before_the_command_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert main(["record", "--output", str(tmp_path), "--", "touch", f"{tmp_path}/ran"]) == 2
    assert "may not be written to; try another --output" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_convert_rewrites_traces_and_orders(tmp_path, capsys):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)
    ex.save(ex.simulate(program), tmp_path / "run.csv")
    assert main(["convert", f"{tmp_path}/run.csv", f"{tmp_path}/run.json.gz"]) == 0
    assert ex.load(tmp_path / "run.json.gz").makespan == 9.0
    assert main(["convert", f"{tmp_path}/run.csv", f"{tmp_path}/run.html"]) == 0
    assert "plotly" in (tmp_path / "run.html").read_text()
    ex.save(program, tmp_path / "order.csv")
    assert main(["convert", f"{tmp_path}/order.csv", f"{tmp_path}/again.csv"]) == 0
    assert str(ex.load(tmp_path / "again.csv")) == str(program)
    assert main(["convert", f"{tmp_path}/order.csv", f"{tmp_path}/order.html"]) == 2
    assert "a page shows a trace; got a Program" in capsys.readouterr().err


def test_convert_says_in_a_line_what_the_file_holds_and_prints_no_data(tmp_path, capsys):
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=3)
    ex.save(ex.simulate(program), tmp_path / "run.csv")
    ex.save(program, tmp_path / "order.csv")
    for source, target, said in (
        ("run.csv", "run.json", "2 ranks, 1 step, 12 events"),  # F and B of 3 on 2 ranks; free messages have no rows
        ("order.csv", "again.csv", "2 ranks, 3 micro-batches, 12 actions"),
    ):
        assert main(["convert", str(tmp_path / source), str(tmp_path / target)]) == 0
        told, size = capsys.readouterr(), (tmp_path / target).stat().st_size
        assert told.out == ""
        shown = f"{size} bytes" if size < 1024 else f"{size / 1024:.4g} KiB"
        assert told.err == f"explorer: {tmp_path / target} holds {said}; {shown}\n"


def test_a_perfetto_file_has_the_ranks_as_processes(tmp_path):
    ex.save(ex.simulate(ex.schedule("gpipe", n_ranks=3, n_micro_batches=2)), tmp_path / "run.csv")
    assert main(["convert", f"{tmp_path}/run.csv", f"{tmp_path}/run.json"]) == 0
    whole = json.loads((tmp_path / "run.json").read_text())
    assert {event["pid"] for event in whole["traceEvents"]} == {0, 1, 2}
    assert whole["distributedInfo"] == {"world_size": 3}
