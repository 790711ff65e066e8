"""Whatever comes, however long, is named in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.errors import InputError, shown
from explorer.schedules import REGISTRY

_LONG: list[Any] = ["x" * 10_000, -(10**5000), [1] * 10_000, np.zeros(1000), {"a": "b" * 10_000}]
_OPTIONS = [(recipe.name, option) for recipe in REGISTRY.values() for option in recipe.options]
_COUNTS = [("dualpipe", count) for count in ("n_ranks", "n_micro_batches", "n_chunks")]


@pytest.mark.parametrize(("name", "argument"), _OPTIONS + _COUNTS)
@pytest.mark.parametrize("value", _LONG, ids=["text", "number", "list", "array", "dict"])
def test_a_long_argument_is_cut_in_the_message(name: str, argument: str, value: object) -> None:
    arguments: dict[str, Any] = {"n_ranks": 4, "n_micro_batches": 8, argument: value}
    with pytest.raises(InputError) as caught:
        ex.schedule(name, **arguments)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("count", ["n_ranks", "n_micro_batches", "n_chunks"])
def test_a_count_with_thousands_of_digits_is_refused(count: str) -> None:
    with pytest.raises(InputError, match="a number of thousands of digits"):
        ex.schedule("looped_bfs", **{"n_ranks": 2, "n_micro_batches": 2, count: 10**5000})  # type: ignore[arg-type]


def test_a_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(InputError) as caught:
        ex.schedule("x" * 10_000, n_ranks=2, n_micro_batches=2)
    assert len(str(caught.value)) < 600
    with pytest.raises(InputError, match=r"1f1b takes .*; got x{60}; leave it out"):
        ex.schedule("1f1b", n_ranks=2, n_micro_batches=2, **{"x" * 10_000: 1})


def test_shown_leaves_what_is_short_as_it_is() -> None:
    assert [shown(value) for value in (5, 0.5, "a", [1, 2], None)] == ["5", "0.5", "'a'", "[1, 2]", "None"]
