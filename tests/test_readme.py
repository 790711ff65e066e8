"""What README.md shows really runs: every block of Python as it stands, every command as far as it goes at once."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from explorer import cli, unregister
from explorer.schedules import REGISTRY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
FOR_TORCHRUN = "# train.py, for torchrun\n"


def blocks(language: str) -> list[tuple[str, str]]:
    """Heading and text of each block in `language`."""
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    found = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [(section.partition("\n")[0], code) for section in sections for code in found.findall(section)]


def commands() -> list[str]:
    """Each `explorer …` with its words, in a sentence."""
    return [one for one in re.findall(r"`explorer ([a-z]+ [^`]+)`", TEXT.replace("\n", " ")) if "…" not in one]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of the test's own to work in; schedules that were registered go again."""
    before = set(REGISTRY)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(REGISTRY) - before:
        unregister(name)


@pytest.mark.parametrize(("heading", "code"), blocks("python"), ids=lambda value: value.partition("\n")[0])
def test_a_block_of_python_runs_as_it_stands(heading, code, place):
    if code.startswith(FOR_TORCHRUN):
        pytest.skip("torchrun starts it; notebooks/03-your-own-run.ipynb records such a script")
    (place / "block.py").write_text(code)
    runpy.run_path("block.py")


def test_most_sections_show_some_python():
    assert len(blocks("python")) >= 9
    assert sum(code.startswith(FOR_TORCHRUN) for _, code in blocks("python")) == 1


@pytest.mark.parametrize("command", commands())
def test_a_command_takes_these_words(command):
    words, _passed_on = cli._at_dashes(shlex.split(command))
    assert callable(cli._parser().parse_args(words).command)


@pytest.mark.parametrize(("heading", "code"), blocks("console"), ids=lambda value: value.partition("\n")[0])
def test_what_a_command_prints_is_what_is_shown(heading, code, place, capsys):
    typed, _, shown = code.partition("\n")
    assert cli.main(shlex.split(typed.removeprefix("$ explorer "))) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()] == shown.splitlines()
