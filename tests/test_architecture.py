"""The house: who may import whom, read from the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "explorer"
SOURCE = Path(__file__).parents[1] / PACKAGE

FLOORS = {
    "errors": 0,
    "core": 1,
    **dict.fromkeys(("schedules", "lowering", "simulate", "partition", "analysis", "io"), 2),
    **dict.fromkeys(("execute", "planner"), 3),
    "figures": 4,
    "widgets": 5,
    "cli": 6,
    **dict.fromkeys(("__init__", "__main__"), 7),
}
NOT_SEEN = {("figures", "execute")}  # below it, and yet none of its business: figures draw numbers

# Where a heavy package may be imported at all. pandas may be, inside functions, anywhere.
HOMES = {
    "torch": {"execute"},
    "plotly": {"figures", "widgets"},
    "ipywidgets": {"widgets"},
    "anywidget": {"widgets"},
    "numba": {"core.kernels"},
}


class Arrow(NamedTuple):
    """One import: `source` needs `target`."""

    source: str
    target: str
    deferred: bool  # inside a function, so not at import
    typing_only: bool  # under `if TYPE_CHECKING:`


@cache
def arrows(root: Path) -> tuple[Arrow, ...]:
    """Every import of every module under `root`, the package's folder, which is read once."""
    files = {_module(path, root): path for path in sorted(root.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in files.items()}
    return tuple(arrow for name, tree in trees.items() for arrow in _arrows_of(name, tree, files))


def _module(path: Path, root: Path) -> str:
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _arrows_of(name: str, tree: ast.Module, modules: dict[str, Path]) -> Iterator[Arrow]:
    for node, deferred, typing_only in _imports(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{name} imports relatively; absolute imports can be read by this test"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [full if full in modules else str(node.module) for full in inner]
        yield from (Arrow(name, target, deferred, typing_only) for target in targets)


def _imports(node: ast.AST, deferred: bool = False, typing_only: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, deferred, typing_only
            continue
        if isinstance(child, ast.expr):
            continue  # an import is a statement
        within = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports(child, deferred or within, typing_only or guarded)


def room(module: str) -> str:
    """The room a module of the package lies in; the package itself is `__init__`."""
    return [*module.split("."), "__init__"][1]


def forbidden(root: Path) -> list[str]:
    """Every arrow that the floors do not allow, in words."""
    found = []
    for arrow in arrows(root):
        inside = arrow.target.split(".")[0] == root.name
        problem = _wrong_floor(arrow) if inside else _wrong_home(arrow)
        if problem:
            found.append(f"{arrow.source} imports {arrow.target}: {problem}")
    return found


def _wrong_floor(arrow: Arrow) -> str:
    source, target = room(arrow.source), room(arrow.target)
    for name in (source, target):
        if name not in FLOORS:
            return f"{name} is not a room of this house"
    if source == target:
        return ""
    if FLOORS[source] <= FLOORS[target]:
        return f"floor {FLOORS[source]} imports only from below, {target} is on floor {FLOORS[target]}"
    return "none of its business" if (source, target) in NOT_SEEN else ""


def _wrong_home(arrow: Arrow) -> str:
    package = arrow.target.split(".")[0]
    within = ".".join(arrow.source.split(".")[1:])
    if package == "pandas":
        return "" if arrow.deferred or arrow.typing_only else "pandas is imported inside functions only"
    if package not in HOMES or any(f"{within}.".startswith(f"{home}.") for home in HOMES[package]):
        return ""
    return f"{package} belongs in {' and '.join(sorted(HOMES[package]))}"


def cycles(root: Path) -> list[list[str]]:
    """Modules that need each other to be imported, as chains that end where they began.

    An import inside a function is a need too; one for type checkers only is none. A package's `__init__` gathers
    names from its modules, which makes it depend on them.
    """
    modules = {_module(path, root) for path in root.rglob("*.py")}
    needs: dict[str, set[str]] = {module: set() for module in modules}
    for arrow in arrows(root):
        if arrow.target in modules and not arrow.typing_only:
            needs[arrow.source].add(arrow.target)
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(module: str, chain: list[str]) -> None:
        if module in chain:
            found.append([*chain[chain.index(module) :], module])
        elif module not in done:
            for target in sorted(needs[module]):
                visit(target, [*chain, module])
            done.add(module)

    for module in sorted(modules):
        visit(module, [])
    return found


def test_every_import_points_to_a_lower_floor_or_stays_in_its_room():
    assert forbidden(SOURCE) == []


def test_no_modules_import_each_other_in_a_circle():
    assert cycles(SOURCE) == []


@pytest.mark.parametrize("name", ["core", "schedules", "simulate", "execute", "figures", "widgets", "cli"])
def test_the_reading_sees_the_imports_of_every_room(name):
    """Without this the tests above would pass on a folder in which they read nothing."""
    assert any(room(arrow.source) == name for arrow in arrows(SOURCE))


def _house(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / PACKAGE


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("core/trace.py", "from explorer.simulate import simulate", "simulate is on floor 2"),
        ("core/trace.py", "def f():\n    from explorer.figures import memory", "figures is on floor 4"),
        ("schedules/a.py", "from explorer.simulate import simulate", "simulate is on floor 2"),
        ("schedules/a.py", "if TYPE_CHECKING:\n    from explorer.io import load", "io is on floor 2"),
        ("core/a.py", "import explorer", "__init__ is on floor 7"),
        ("figures/a.py", "from explorer.execute import execute", "none of its business"),
        ("gadgets/a.py", "from explorer.core import Trace", "gadgets is not a room"),
        ("core/a.py", "import pandas as pd", "pandas is imported inside functions only"),
        ("simulate/a.py", "def f():\n    import torch.nn", "torch belongs in execute"),
        ("analysis/a.py", "import plotly.graph_objects as go", "plotly belongs in figures and widgets"),
        ("figures/a.py", "from ipywidgets import HBox", "ipywidgets belongs in widgets"),
        ("core/kernels_too.py", "import numba", "numba belongs in core.kernels"),
    ],
)
def test_a_forbidden_arrow_is_found(tmp_path, file, text, problem):
    (found,) = forbidden(_house(tmp_path, {file: text, "core/__init__.py": ""}))
    assert problem in found


def test_a_circle_is_found_with_its_chain(tmp_path):
    root = _house(
        tmp_path,
        {
            "core/a.py": "from explorer.core.b import x",
            "core/b.py": "def f():\n    from explorer.core import c",
            "core/c.py": "import explorer.core.a",
            "core/__init__.py": "",
        },
    )
    assert forbidden(root) == []
    assert cycles(root) == [["explorer.core.a", "explorer.core.b", "explorer.core.c", "explorer.core.a"]]


def test_imports_for_type_checkers_make_no_circle(tmp_path):
    files = {
        "core/a.py": "from explorer.core.b import x",
        "core/b.py": "if TYPE_CHECKING:\n    from explorer.core.a import y",
    }
    assert cycles(_house(tmp_path, files)) == []
