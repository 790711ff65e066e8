"""`explorer execute` on a small real run."""

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
