"""`explorer execute` on a small real run."""

import importlib
import json

import pytest

from explorer.cli import main


def test_execute_really_trains_and_says_so_in_json(capsys, tmp_path):
    page = tmp_path / "run.html"
    flags = "--schedule 1f1b --ranks 2 --micro-batches 2 --model mlp --steps 2 --json --html"
    assert main(["execute", *flags.split(), str(page)]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["parity"] is True
    assert values["parity_worst"] < 1e-3
    assert len(values["losses"]) == 2
    assert values["losses"][1] < values["losses"][0]
    assert values["peak_in_flight"] == [2, 1]
    assert len(values["peak_bytes"]) == len(values["peak_activation_bytes"]) == 2
    assert values["makespan"] > 0
    assert values["clock"] == "virtual"
    assert "modelled links" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_execute_runs_ranks_as_processes(capsys, tmp_path):
    page = tmp_path / "run.html"
    flags = "--schedule zb_h1 --ranks 2 --micro-batches 2 --model gpt --backend processes --json --html"
    assert main(["execute", *flags.split(), str(page)]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["parity"] is True
    assert values["clock"] == "real"
    assert "real clocks" in page.read_text(encoding="utf-8")


def _as_one_of_two(monkeypatch, rank):
    for name, value in {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("rank", "told", "said"), [("0", False, True), ("1", True, False), ("1", False, True)])
def test_under_torchrun_one_process_tells_what_all_refuse(monkeypatch, capsys, rank, told, said):
    _as_one_of_two(monkeypatch, rank)
    monkeypatch.setattr(importlib.import_module("explorer.execute.speaking"), "is_told_by_first", lambda message: told)
    assert main(["execute", "--steps", "0"]) == 2
    assert capsys.readouterr().err.count("steps is a whole number from 1") == said


def test_the_kernel_is_refused_where_each_of_torchruns_processes_would_write_the_same_files(
    monkeypatch, capsys, tmp_path
):
    _as_one_of_two(monkeypatch, "0")
    assert main(["execute", "--checkpoint", str(tmp_path / "checkpoints")]) == 2
    assert "torchrun has started 2, each of which would; add --backend processes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
