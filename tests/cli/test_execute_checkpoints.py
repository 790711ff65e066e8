"""`explorer execute`: a training saved in one call and gone on with in the next."""

from __future__ import annotations

import io
import json

import pytest

import explorer as ex
from explorer.cli import REFUSED, main
from explorer.cli.progress import Progress
from explorer.execute.events import RunStart, SlotEnd, StepEnd

SMALL = ("execute", "--schedule", "gpipe", "--micro-batches", "2", "--layers", "4")


def losses(capsys, *words: str) -> tuple[list[float], int]:
    assert main([*SMALL, *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parity"] is True
    return told["losses"], told["first_step"]


def test_a_training_goes_on_at_other_ranks_as_if_it_had_not_stopped(capsys, tmp_path):
    folder = str(tmp_path / "saved")
    whole, first = losses(capsys, "--ranks", "1", "--steps", "4")
    assert first == 0
    words = ["--checkpoint", folder, "--every", "2", "--keep-last", "1"]
    begun, _ = losses(capsys, "--ranks", "2", "--steps", "2", *words)
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["step-00000002.safetensors"]
    rest, first = losses(capsys, "--ranks", "4", "--steps", "2", "--resume", folder)
    assert first == 2
    assert begun + rest == pytest.approx(whole, rel=1e-4)


def test_the_report_says_at_which_step_it_went_on(capsys, tmp_path):
    main([*SMALL, "--ranks", "2", "--checkpoint", str(tmp_path)])
    capsys.readouterr()
    assert main([*SMALL, "--ranks", "2", "--resume", str(tmp_path)]) == 0
    assert "; resumed at step 1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--checkpoint", "x", "--every", "0"], "every is a whole number of at least 1; got 0; try 1"),
        (["--checkpoint", "x", "--keep-last", "-1"], "keep_last is a whole number of at least 1; got -1; try 1"),
        (["--checkpoint", "x", "--every", "2.5"], "--every: needs a whole number; got '2.5'; try 4"),
        (["--every", "2"], "go where --checkpoint says; got --every 2 alone; add --checkpoint checkpoints/"),
        (["--keep-last", "2"], "got --keep-last 2 alone"),
        (["--checkpoint", "a file"], "a checkpoint goes into a folder; a file is a file; give a folder"),
        (["--checkpoint", ""], "checkpoint is the path of a folder; got '', which is none: it is empty"),
        (["--resume", "nowhere"], "a checkpoint is a file that can be read; nowhere cannot: No such file"),
        (["--resume", "a file"], "a checkpoint is in the safetensors format; a file has no table"),
        (["--resume", "empty"], "a run resumes from a checkpoint; empty has no step-….safetensors"),
        (["--layers", "1"], "--layers is a whole number from the number of stages to 4096; got 1 for 2 stages; try 2"),
        (["--model", "mine:made", "--layers", "4"], "--layers is of a ready model; got 4 for 'mine:made'"),
    ],
)
def test_what_cannot_be_saved_or_gone_on_with_is_one_sentence(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    (tmp_path / "empty").mkdir()
    assert main(["execute", "--ranks", "2", "--micro-batches", "2", *words]) == REFUSED
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a file", "empty"]


def test_a_checkpoint_of_other_layers_is_refused_with_what_would_do(capsys, tmp_path):
    main([*SMALL, "--ranks", "2", "--checkpoint", str(tmp_path)])
    capsys.readouterr()
    assert main(["execute", "--ranks", "2", "--micro-batches", "2", "--resume", str(tmp_path)]) == REFUSED
    assert "give its own, of as many layers" in capsys.readouterr().err


def test_progress_shows_a_step_that_is_told_all_at_once_as_done():
    program = ex.schedule("gpipe", n_ranks=2, n_micro_batches=2)
    terminal = io.StringIO()
    progress = Progress(terminal)
    progress.run_start(RunStart(program, 2, "torchrun", "real"))
    for slot in range(program.n_slots):
        progress.slot_end(SlotEnd(0, 0, slot, (), 0.1))
    progress.step_end(StepEnd(0, 2.5))
    assert terminal.getvalue().split("\r")[-1] == "step 1 of 2, 50% of the actions, loss 2.5000\x1b[K"
