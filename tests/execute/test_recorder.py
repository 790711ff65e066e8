"""Following a run from elsewhere, and ending it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from torch import nn

import explorer as ex
from explorer.errors import RunError, RunStopped
from explorer.execute import hooks
from explorer.execute.typical import Lags, refit

MSE = nn.functional.mse_loss


def test_a_recorder_has_nothing_before_a_run():
    recorder = ex.Recorder()
    assert recorder.progress == 0.0
    assert recorder.losses == []
    assert recorder.predicted() is None
    with pytest.raises(RunError, match="pass it in hooks="):
        recorder.trace()


def test_the_trace_grows_while_the_run_goes_on(program, make_layers, batch):
    """Held at each slot while another thread looks."""
    recorder = ex.Recorder()
    seen = []

    class Look(ex.Hook):
        def slot_start(self, event):
            looker = threading.Thread(target=lambda: seen.append((recorder.progress, recorder.trace())))
            looker.start()
            looker.join()

    run = ex.execute(program, make_layers(2), batch, loss=MSE, n_steps=2, hooks=[recorder, Look()])
    n = 2 * program.n_slots
    assert [progress for progress, _ in seen] == pytest.approx([k / n for k in range(n)])
    assert [len(trace.events) for _, trace in seen] == list(range(n))
    assert recorder.progress == 1.0
    assert len(recorder.trace().events) == len(run.trace.events) == n
    last = seen[-1][1].events  # what was laid once stays where it is
    assert set(zip(last.slot, last.rank, last.start, strict=True)) <= set(
        zip(run.trace.events.slot, run.trace.events.rank, run.trace.events.start, strict=True)
    )


def test_the_prediction_is_there_from_the_warm_up_on(program, batch, clock, timed):
    recorder = ex.Recorder()
    seen = []

    class Look(ex.Hook):
        def step_start(self, event):
            seen.append(recorder.predicted().events)

    ex.execute(program, [timed(1, 2), timed(1, 2)], batch, loss=MSE, n_steps=2, hooks=[recorder, Look()], clock=clock)
    assert [len(events) for events in seen] == [2 * program.n_slots] * 2
    assert seen[0].end.max() == 30.0  # two steps of (4 + 1)(1 + 2)


def test_stop_ends_a_run_at_the_next_slot_and_keeps_what_has_run(program, make_layers, batch):
    recorder, stop = ex.Recorder(), ex.Stop()

    class StopAfterThree(ex.Hook):
        def slot_end(self, event):
            if len(recorder.trace().events) == 3:
                stop.set()

    with pytest.raises(RunStopped, match=r"the run was stopped before \d[FB]\d of step 0"):
        ex.execute(program, make_layers(2), batch, loss=MSE, hooks=[recorder, StopAfterThree(), stop])
    assert len(recorder.trace().events) == 3


@pytest.mark.parametrize("moment", ["calibrated", "step_end"])
def test_stop_also_ends_the_warm_up_and_the_comparison(moment, program, make_layers, batch):
    stop = ex.Stop()

    class StopAt(ex.Hook):
        def run_start(self, event):
            if moment == "calibrated":
                stop.set()

        def step_end(self, event):
            stop.set()

    with pytest.raises(RunStopped, match="while it warmed up or compared itself"):
        ex.execute(program, make_layers(2), batch, loss=MSE, hooks=[StopAt(), stop])


def test_what_a_hook_raises_is_passed_on_and_every_hook_hears_of_the_end(program, make_layers, batch):
    ends = []

    class Nosy(ex.Hook):
        def slot_end(self, event):
            raise LookupError("hook's own")

    class Last(ex.Hook):
        def run_end(self, event):
            ends.append(event.error)

    with pytest.raises(LookupError, match="hook's own") as caught:
        ex.execute(program, make_layers(2), batch, loss=MSE, hooks=[Nosy(), Last()])
    assert ends == [caught.value]


def test_hooks_hear_of_everything_in_order(program, make_layers, batch, sgd):
    heard = []

    class All(ex.Hook):
        pass

    names = [name for name in vars(hooks.Hook) if not name.startswith("_") and name != "pulse"]
    for name in names:
        setattr(All, name, lambda self, event, name=name: heard.append(name))
    ex.execute(program, make_layers(2), batch, loss=MSE, optimizer=sgd, hooks=[All()])
    assert heard[:4] == ["run_start", "calibrated", "step_start", "memory"]
    assert heard[-4:] == ["updated", "updated", "step_end", "run_end"]
    assert heard.count("slot_start") == heard.count("slot_end") == program.n_slots
    assert heard.count("transfer") == 2 * 4


def test_a_recorder_may_be_used_again(program, make_layers, batch):
    recorder = ex.Recorder()
    for _ in range(2):
        ex.execute(program, make_layers(2), batch, loss=MSE, hooks=[recorder])
        assert recorder.trace().steps == [0]
        assert len(recorder.losses) == 1


def test_the_forecast_follows_what_the_last_steps_took():
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    costs = ex.Costs(forward=np.ones(2), backward=np.full(2, 2.0))
    seconds = np.where(program.kind == ex.Kind.F, 3.0, 5.0)[None]
    fitted = refit(costs, program, seconds, Lags(np.zeros(0), np.zeros(0)))
    assert fitted.forward.tolist() == [3.0, 3.0]
    assert ex.simulate(program, fitted).makespan == ex.simulate(program, ex.Costs(forward=3.0, backward=5.0)).makespan
