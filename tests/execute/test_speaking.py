"""Who of several processes tells what all of them would tell."""

from __future__ import annotations

import pytest
from torch import distributed

from explorer.execute.speaking import is_told_by_first


@pytest.fixture
def job():
    """What torchrun gives each of two processes, with its store."""
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    both = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    yield {**both, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    del store


def test_the_first_speaks_for_those_who_say_the_same(job):
    assert not is_told_by_first("no", {**job, "RANK": "0"})
    assert is_told_by_first("no", {**job, "RANK": "1"})


def test_who_has_something_else_to_say_is_heard(job):
    assert not is_told_by_first("no", {**job, "RANK": "0"})
    assert not is_told_by_first("no module of mine", {**job, "RANK": "1"})


def test_where_the_first_says_nothing_the_others_speak(job):
    assert not is_told_by_first("no", {**job, "RANK": "1"}, seconds=0.2)


def test_what_was_said_before_torchrun_started_all_again_does_not_count(job):
    assert not is_told_by_first("no", {**job, "RANK": "0"})
    again = {**job, "RANK": "1", "TORCHELASTIC_RESTART_COUNT": "1"}
    assert not is_told_by_first("no", again, seconds=0.2)


@pytest.mark.parametrize(
    "changes", [{"WORLD_SIZE": "1"}, {"TORCHELASTIC_USE_AGENT_STORE": "False"}, {"MASTER_PORT": "none"}]
)
def test_who_cannot_ask_speaks(job, changes):
    assert not is_told_by_first("no", {**job, "RANK": "0"})
    assert not is_told_by_first("no", {**job, "RANK": "1", **changes})


def test_outside_of_torchrun_nobody_is_asked():
    assert not is_told_by_first("no", {})
