"""What lies in the repository, and what must not."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP = {"pyproject.toml", "explorer", "notebooks", "tests", "binder", "README.md", "LICENSE"}
MACHINE_PATH = re.compile(r"(?<![\w./])/(?:work|root|Users|home/(?!jovyan\b)\w+)/")
MAX_LINES, MAX_FUNCTION_LINES, MAX_NOTEBOOK_BYTES = 350, 60, 300_000


def tracked() -> list[Path]:
    """The files under version control, or a reason to skip where there is none (an unpacked sdist)."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).exists()]


def sources() -> list[Path]:
    """The library's own modules."""
    return sorted((ROOT / "explorer").rglob("*.py"))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and all that is in it, expressions left out: they hold no function that has a name."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from _statements(child)


@cache
def lengths(path: Path) -> tuple[tuple[str, int], ...]:
    """Name and lines of every function of a file, methods and inner ones too; the file is read once."""
    nodes = _statements(ast.parse(path.read_text("utf-8")))
    found = (node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return tuple((function.name, length(function)) for function in found)


def test_the_top_level_holds_only_the_agreed_names():
    names = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} == TOP


def test_no_file_names_a_path_of_somebodys_machine():
    found = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


@pytest.mark.parametrize("where", ["work", "root", "home/somebody"])
def test_a_machine_path_is_found(where):
    assert MACHINE_PATH.search(f'open("/{where}/main/file.py")')


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short_enough_to_read(path):
    assert path.read_text("utf-8").count("\n") < MAX_LINES
    assert [(name, lines) for name, lines in lengths(path) if lines >= MAX_FUNCTION_LINES] == []


def test_nine_in_ten_functions_are_shorter_than_33_lines():
    found = sorted(lines for path in sources() for _, lines in lengths(path))
    assert found[len(found) * 9 // 10] < 33


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_small_and_hold_no_widget_state(path):
    assert path.stat().st_size < MAX_NOTEBOOK_BYTES
    assert "widgets" not in json.loads(path.read_text("utf-8"))["metadata"]
