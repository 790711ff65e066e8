"""What `explore` may begin with: every setting refused in a sentence where no control could stand at it."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ExplorerError, InputError
from explorer.widgets.helps import HELP
from explorer.widgets.settings import Settings

_NAMES = [field.name for field in fields(Settings)]
# legal: None as the schedule's own number of chunks, and as no limit
_NONE = ("n_chunks", "memory_limit", "model")


class _Odd:
    """What no setting is."""

    def __repr__(self) -> str:
        return "<odd>"


_WRONG = [_Odd(), b"x", 1j, {}, np.array([1.0, 2.0]), float("nan"), -7]
_HUGE = 10**5000
# how many of these there may be, the schedule says, under their control
_COUNTS = ("model", "n_ranks", "n_micro_batches", "n_chunks")


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in _NAMES if name != "model" for value in _WRONG]
    + [(name, _HUGE) for name in _NAMES if name not in _COUNTS],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_a_setting_of_the_wrong_kind_or_size_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=rf"^{name} (is|are) .*; got .*; ") as caught:
        ex.explore(**{name: value})
    assert caught.value.argument == name


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _NONE])
def test_none_is_refused_where_it_says_nothing(name):
    with pytest.raises(InputError, match=rf"^{name} (is|are) .*; got None; "):
        ex.explore(**{name: None})


@pytest.mark.parametrize(
    ("settings", "message", "legal"),
    [
        ({"sharing": "fare"}, "sharing is one of fair, queue; got 'fare'; did you mean fair?", ("fair", "queue")),
        ({"recompute_for": "x"}, "recompute_for is one of inputs, both; got 'x'; choose one", ("inputs", "both")),
        ({"messages": "order"}, "messages is one of free, rendezvous, .*; got 'order'; did you mean ordered?", None),
        ({"moves": 3}, "moves are pairs of an action and its slot, in a list; got 3; try", ()),
        ({"moves": "ab"}, "moves are pairs of an action and its slot, in a list; got 'ab'; try", ()),
        ({"moves": [("0F1", 1.5)]}, "moves are pairs .*; got .*1.5.*; try", ()),
        ({"ranks_per_node": -1}, "ranks_per_node is a whole number from 0 to 65536; got -1; try 0", (0,)),
        ({"slow_rank": 99}, "slow_rank is a whole number from 0 to 3; got 99; try 3", (3,)),
        ({"slow_rank": 7, "n_ranks": 6}, "slow_rank is a whole number from 0 to 5; got 7; try 5", (5,)),
        ({"long_micro_batch": 8}, "long_micro_batch is a whole number from 0 to 7; got 8; try 7", (7,)),
        ({"warm_up": -5}, "warm_up is a whole number from -1 to 65536; got -5; try -1", (-1,)),
        ({"seed": 2**64}, "seed is a whole number from 0 to 4294967295; got 18446744073709551616", (2**32 - 1,)),
        ({"n_steps": 10**9}, "n_steps is a whole number from 1 to 100000; got 1000000000; try 100000", (100_000,)),
    ],
)
def test_out_of_its_choices_or_range_the_legal_ones_are_named(settings, message, legal):
    with pytest.raises(InputError, match=message) as caught:
        ex.explore(**settings)
    assert legal is None or caught.value.legal == legal


@pytest.mark.parametrize("moves", [[("9F9", 0)], [("0F1", 99)], [("junk", 0)]])
def test_moves_of_what_is_not_there_are_refused_in_a_sentence(moves):
    with pytest.raises(ExplorerError, match=re.compile("; (got|the kinds|1f1b has none)")):
        ex.explore(moves=moves)


def test_numpys_numbers_and_lists_begin_as_pythons():
    app = ex.explore(n_ranks=np.int64(3), forward=np.float32(0.5), moves=[["0F1", 0]], run_on_change=False)
    try:
        begun = app.controls.settings()
        assert (begun.n_ranks, begun.forward, begun.moves) == (3, 0.5, (("0F1", 0),))
        assert type(begun.n_ranks) is int
    finally:
        app.close()


def test_the_longest_times_of_all_are_drawn_without_a_warning():
    app = ex.explore(forward=1e15, backward_ratio=1e15, slow_factor=1e15, latency=1e15, run_on_change=False)
    try:
        assert "makespan" in repr(app)
        assert app._repr_mimebundle_()
        assert app.timeline.predicted["duration"]["value"]["dtype"] == "float64"
    finally:
        app.close()


@pytest.mark.parametrize("value", ["x", -1, 1, [], {}])
def test_run_on_change_is_a_switch(value):
    with pytest.raises(InputError, match=r"run_on_change is True, False or None; got .*; try False"):
        ex.explore(run_on_change=value)


def test_one_rank_needs_no_messages_whatever_their_rule():
    app = ex.explore(n_ranks=1, messages="buffered", run_on_change=False)
    try:
        assert not app.timeline.stale
    finally:
        app.close()


def test_each_control_says_what_it_is_for():
    app = ex.explore(run_on_change=False)
    try:
        silent = [name for name, field in app.controls.fields.items() if len(field.control.tooltip or "") < 10]
        assert silent == []
        assert set(HELP) == {field.control.description for field in app.controls.fields.values()}
    finally:
        app.close()
