"""The public face: what `explorer.*` offers, and that each name says what it gives."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

import explorer

NAMES = sorted(explorer._HOME)


def modules() -> list[str]:
    """Every module of the package but the one that runs when it is imported."""
    found = pkgutil.walk_packages(explorer.__path__, "explorer.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def first_line_problem(thing: object) -> str:
    """What is wrong with the first line of a docstring; "" if it is one sentence."""
    text = thing.__doc__ or ""
    line = text.strip().split("\n")[0]
    if not line:
        return "no docstring"
    if len(text.strip().split("\n")) > 1 and text.strip().split("\n")[1].strip():
        return "the first sentence ends with the first line"
    if not line.endswith((".", "?", "…")):
        return f"the first line is a sentence: {line!r}"
    return "" if len(re.findall(r"[.?!] +[A-Z]", line)) == 0 else f"one sentence: {line!r}"


def test_all_is_the_table_and_the_version():
    assert list(explorer.__all__) == sorted([*NAMES, "__version__"])
    assert dir(explorer) == list(explorer.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_loads_from_its_room(name):
    thing = getattr(explorer, name)
    assert not inspect.ismodule(thing)
    assert thing is getattr(importlib.import_module(f"explorer.{explorer._HOME[name]}"), name)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_function_and_class_says_what_it_gives_in_one_sentence(name):
    thing = getattr(explorer, name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        assert first_line_problem(thing) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no docstring"),
        ("gives a number", "the first line is a sentence"),
        ("Gives a number\nor two.", "the first sentence ends with the first line"),
        ("Gives a number. Or Two. Or three.", "one sentence"),
    ],
)
def test_a_first_line_that_is_no_sentence_is_found(text, problem):
    def thing() -> None: ...

    thing.__doc__ = text
    assert problem in first_line_problem(thing)


def test_a_name_that_is_not_there_is_refused_as_python_refuses_it():
    with pytest.raises(AttributeError, match=r"module 'explorer' has no attribute 'frobnicate'"):
        explorer.frobnicate  # noqa: B018  the look-up is the test


def test_names_stay_functions_after_their_rooms_are_imported():
    for module in modules():
        importlib.import_module(module)
    assert [name for name in NAMES if inspect.ismodule(getattr(explorer, name))] == []
    assert explorer.simulate(explorer.schedule("naive", n_ranks=1, n_micro_batches=1)).makespan == 3.0


def test_type_checkers_are_told_of_every_public_name():
    source = inspect.getsource(explorer)
    block = source[source.index("if TYPE_CHECKING:") : source.index("_HOME")]
    told = set(re.findall(r"\b\w+\b", block))
    assert [name for name in NAMES if name not in told] == []
