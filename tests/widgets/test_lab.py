"""The lab: faults are put together, given to the next run, and shown when they happen or cannot be."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

import explorer as ex


@pytest.fixture
def app():
    layers = [nn.Linear(8, 8) for _ in range(4)]
    batch = torch.ones(32, 8), torch.zeros(32, 8)
    opened = ex.explore(layers, batch=batch, loss=nn.functional.mse_loss, backend="kernel", run_on_change=False)
    yield opened
    opened.close()
    assert opened._runner.join(10)


def fill(lab, kind, **values):
    lab.unfold.value = True
    lab.kind.value = kind
    for name, value in values.items():
        lab.fields[name].value = value
    lab.add.click()


def run(app):
    app.panel.run.click()
    deadline = time.monotonic() + 30
    while not app.panel.status.startswith(("Ran ", "The run failed")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_lab_is_one_button_until_it_is_unfolded(app):
    lab = app.panel.lab
    assert list(lab.children) == [lab.unfold]
    lab.unfold.value = True
    assert len(lab.children) == 2


def test_only_what_a_fault_is_made_of_is_asked_for(app):
    lab = app.panel.lab
    lab.unfold.value = True
    asked = {}
    for _, kind in lab.kind.options:
        lab.kind.value = kind
        asked[kind] = {name for name, field in lab.fields.items() if "pipeline-hidden" not in field._dom_classes}
    assert asked == {
        "slow": {"rank", "factor", "step"},
        "delay": {"action", "seconds", "step"},
        "delay_message": {"action", "seconds", "step"},
        "raise": {"action", "step"},
        "kill": {"rank", "action", "step"},
    }


def test_faults_are_added_given_to_the_run_shown_and_cleared(app):
    lab = app.panel.lab
    fill(lab, "slow", rank=1, factor=3.0, step=1)
    assert lab.faults == (ex.SlowRank(rank=1, factor=3.0, from_step=1),)
    assert lab.listed == "The next runs have: slow rank=1 factor=3 from_step=1"
    run(app)
    assert {mark.text for mark in app.run.trace.marks} == {"slow rank=1 factor=3 from_step=1"}
    assert "slow rank=1 factor=3 from_step=1 at" in lab.told
    lab.clear.click()
    assert (lab.faults, lab.listed) == ((), "")


def test_what_is_no_fault_is_said_under_the_fields(app):
    fill(app.panel.lab, "raise", action="B3")
    assert app.panel.lab.error.startswith("an action reads <stage><kind><micro-batch>")
    assert app.panel.lab.faults == ()
    fill(app.panel.lab, "raise", action=" 1B3 ")
    assert app.panel.lab.error == ""


def test_what_the_run_cannot_have_is_said_in_the_lab(app):
    fill(app.panel.lab, "kill", rank=1)
    run(app)
    assert app.panel.lab.error.startswith("a rank is killed with its process, and in the kernel all ranks are one")
    assert app.panel.error == ""


def test_an_error_that_was_put_there_leaves_what_ran_in_the_picture(app):
    fill(app.panel.lab, "raise", action="1F2", step=1)
    run(app)
    assert "1F2" in app.panel.error
    assert "InjectedError" in app.panel.error
    assert "raise action=1F2 step=1 at" in app.panel.lab.told
