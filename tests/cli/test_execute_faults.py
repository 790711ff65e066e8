"""`explorer execute`: faults in words, models of one's own, and the file of the trace."""

from __future__ import annotations

import sys

import pytest

import explorer as ex
from explorer.cli import FAILED, REFUSED, main

SMALL = ("execute", "--ranks", "2", "--micro-batches", "4")
OWN = """
from torch import nn
import torch

def made():
    return [nn.Linear(4, 4), nn.Linear(4, 4)], (torch.randn(8, 4), torch.randn(8, 4)), nn.functional.mse_loss

def wrong():
    return 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_training.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("own_training", None)


def test_faults_of_the_command_line_are_marks_of_the_saved_trace(capsys, tmp_path, own):
    file = tmp_path / "run.json.gz"
    faults = ["slow rank=1 factor=2", "delay action=0F1 seconds=0.01 step=1"]
    words = [word for fault in faults for word in ("--fault", fault)]
    assert main([*SMALL, "--model", "own_training:made", "--steps", "2", *words, "--output", str(file)]) == 0
    assert "gradients equal" in capsys.readouterr().out
    trace = ex.load(file)
    assert {mark.text for mark in trace.marks} == set(faults)
    assert trace.steps == [0, 1]


def test_a_run_that_fails_leaves_its_trace_in_the_file_and_says_where(capsys, tmp_path, own):
    file = tmp_path / "run.json.gz"
    words = ["--fault", "raise action=1B2", "--output", str(file), "--model", "own_training:made"]
    assert main([*SMALL, *words]) == FAILED
    assert "1B2 (backward of micro-batch 2 in stage 1 on rank 1, step 0) failed" in capsys.readouterr().err
    trace = ex.load(file)
    assert [mark.text for mark in trace.marks] == ["raise action=1B2"]
    assert 0 < len(trace.events) < 2 * trace.program.n_actions


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fault", "sloww rank=1"], "a fault is one of slow, delay, delay_message, raise, kill; got 'sloww'"),
        (["--fault", "slow rank=9 factor=2"], "a rank is from 0 to 1; got 9; try 1; in the fault 'slow rank=9 factor"),
        (["--fault", "kill rank=1"], "in the kernel all ranks are one"),
        (["--model", "nothing"], "--model is one of mlp, conv, gpt, or module:function; got 'nothing'"),
        (["--model", "own_training:absent"], "own_training has no 'absent'"),
        (["--model", "no_such_module:made"], "there is no no_such_module"),
        (["--model", "own_training:wrong"], "gives (model, batch, loss), or an optimizer besides; got int"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, said, capsys, own):
    assert main([*SMALL, *words]) == REFUSED
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
