"""What cannot be gives one sentence and an exit status, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import explorer.cli
from explorer.cli import main
from explorer.errors import RunError
from explorer.schedules import REGISTRY


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("simulate --ranks 0", "n_ranks is a whole number of at least 1; got 0"),
        ("simulate --ranks -3", "n_ranks is a whole number of at least 1; got -3"),
        ("simulate --ranks 2.5", "--ranks: needs a whole number; got '2.5'"),
        ("simulate --ranks 99999999999999", "at most 4096 ranks; got 99999999999999"),
        ("simulate --micro-batches 1000000000", "at most 2000000 pairs"),
        ("simulate --schedule foo", "a schedule is one of .*; got 'foo'"),
        ("simulate --schedule interleaved_1f1b --micro-batches 10", "try 8 or 12"),
        ("simulate --latency -1", "latency is 0 or more, at most .*; got -1; try 0"),
        ("simulate --latency nan", "latency is 0 or more, at most .*; got nan; try 0"),
        ("simulate --forward 1e308", "needs 0, or a number from 1e-100 to 1e.100; got .1e308."),
        ("simulate --forward x", "needs a number; got 'x'"),
        ("simulate --memory-limit 16GB", "--memory-limit: needs bytes as a plain number; got '16GB'; try 80e9 for 80"),
        ("simulate --memory-limit nan", "memory_limit is bytes of a rank, above 0; got nan; try 80e9"),
        ("simulate --bandwidth 0", "bandwidth is above 0"),
        ("simulate --html /nowhere/at/all.html", "a page needs a path that can be written"),
        ("execute --steps 0", "steps is a whole number from 1"),
        ("execute --model vit", "--model is one of mlp, conv, gpt, or module:function; got 'vit'; try gpt"),
        ("simulate --rank 4", "unrecognized arguments: --rank 4; `explorer simulate --help` lists what it takes"),
        ("lab one two", "unrecognized arguments: two; `explorer lab --help` lists what it takes"),
        ("nothing", "invalid choice: 'nothing'"),
        ("", "COMMAND"),
    ],
)
def test_what_cannot_be_gives_one_sentence_and_status_2(capsys, line, sentence):
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(err)


@pytest.mark.parametrize(("raised", "status"), [(RunError("layer 3 raised"), 1), (KeyboardInterrupt(), 130)])
def test_a_run_that_fails_or_is_interrupted_has_its_own_status(monkeypatch, capsys, raised, status):
    def run(arguments):
        raise raised

    monkeypatch.setattr(explorer.cli.simulate, "run", run)
    assert main(["simulate"]) == status
    assert capsys.readouterr().err == ("explorer: layer 3 raised\n" if status == 1 else "")


def test_a_reader_that_has_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "explorer", "schedules"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""


def test_schedules_lists_every_schedule(capsys):
    assert main(["schedules", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(REGISTRY)
    assert main(["schedules"]) == 0
    printed = capsys.readouterr().out
    assert all(recipe.needs in printed for recipe in REGISTRY.values())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a device of Linux")
def test_output_that_cannot_be_written_is_one_sentence():
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "explorer", "schedules"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("explorer: the output cannot be written")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_closed_output_is_no_traceback():
    words = f"{sys.executable} -m explorer schedules >&-"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_numbers_too_small_to_divide_by_are_refused(capsys):
    assert main(["simulate", "--forward", "1e-320"]) == 2
    assert "needs 0, or a number from 1e-100 to 1e+100; got '1e-320'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        (["--", "--port=9999"], ["--port=9999"]),
        (["--port", "9999"], ["--port", "9999"]),  # and no folder of that name
        (
            ["--no-browser", "--ServerApp.token=a -- b", "--", "x"],
            ["--no-browser", "--ServerApp.token=a -- b", "--", "x"],
        ),
    ],
)
def test_options_that_are_not_labs_own_go_to_jupyterlab(monkeypatch, tmp_path, words, passed_on):
    served = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["explorer.cli.lab"], "_serve", lambda words, folder: served.append(words) or 0)
    assert main(["lab", *words]) == 0
    assert served[0][-len(passed_on) :] == passed_on
    assert served[0].count("--") == passed_on.count("--")
    assert list(tmp_path.iterdir()) == []


def test_labs_help_says_where_options_go(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["lab", "--help"])
    assert "Options are jupyterlab's, behind the folder if one is named" in " ".join(capsys.readouterr().out.split())
