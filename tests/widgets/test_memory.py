"""Memory in the app: what the controls say, the memory row, and what a rank holds at its peak."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.errors import InputError
from explorer.figures.memory_stack import memory_stack_info
from explorer.widgets.code import code_of
from explorer.widgets.compared import compared, title_of
from explorer.widgets.curves import both_curves, over_in_words
from explorer.widgets.look import Look
from explorer.widgets.memory_chart import _thinned, chart_of
from explorer.widgets.memory_page import MemoryPanel
from explorer.widgets.settings import Settings

GIB = 2.0**30
LONG = 60.0  # seconds; a failure is a test that hangs


@pytest.fixture
def app():
    # rank r of 1F1B keeps 4 − r activations of 1 GiB beside parameters, gradients and twice that: 1 + 1 + 2
    made = ex.explore(
        n_ranks=4,
        n_micro_batches=8,
        activation_bytes=GIB,
        parameter_bytes=GIB,
        message_bytes=0.0,
        run_on_change=False,
    )
    yield made
    made.close()


@pytest.fixture
def panel():
    made = MemoryPanel(Look())
    yield made
    made.close()


def simulated(name="1f1b", **costs):
    costs = {"activation_bytes": GIB, "parameter_bytes": GIB, **costs}
    return ex.simulate(ex.schedule(name, n_ranks=4, n_micro_batches=8), ex.Costs(**costs))


def text(page):
    """A page of the app without its marks."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page))


def type_in(app, name, value):
    app.controls.fields[name].control.value = value


def number(app, name):
    return next((one["values"] for one in app.timeline.numbers if one["name"] == name), None)


def await_true(true):
    limit = time.monotonic() + LONG
    while not true() and time.monotonic() < limit:
        time.sleep(0.01)
    assert true()


# ── settings and controls ───────────────────────────────────────────────────────────────────────────────────────────


def test_settings_without_bytes_predict_none():
    assert len(Settings().predict().trace.memory) == 0


def test_settings_divide_a_ranks_share_among_its_chunks():
    settings = Settings(schedule="interleaved_1f1b", n_chunks=2, activation_bytes=8.0, parameter_bytes=6.0)
    costs = settings.predict().trace.costs
    assert (costs.activation_bytes, costs.parameter_bytes, costs.optimizer_bytes) == (4, 3, 6)


def test_settings_keep_a_share_of_activations_for_w():
    costs = Settings(schedule="zb_h1", activation_bytes=8.0, kept_share=0.25).predict().trace.costs
    assert costs.weight_gradient_bytes == 2
    assert Settings(activation_bytes=8.0).predict().trace.costs.weight_gradient_bytes is None


def test_controls_are_in_mb_and_gb_and_say_what_the_picture_calls_them(app):
    type_in(app, "activation_bytes", 6000)
    type_in(app, "memory_limit", 80)
    settings = app.controls.settings()
    assert (settings.activation_bytes, settings.memory_limit) == (6e9, 80e9)
    assert app.controls.fields["activation_bytes"].note.value.startswith("5.588 GiB that a micro-batch keeps")
    assert app.controls.fields["memory_limit"].note.value == "74.51 GiB of each rank, for everything"


def test_controls_show_what_matters(app):
    def seen(name):
        return "pipeline-hidden" not in app.controls.fields[name]._dom_classes

    assert seen("optimizer_ratio")
    assert seen("message_bytes")  # they lie in receive buffers
    assert not seen("recompute_bytes")
    type_in(app, "recompute", 1.0)
    assert seen("recompute_bytes")
    type_in(app, "activation_bytes", 0)
    type_in(app, "parameter_bytes", 0)
    assert not any(map(seen, ("optimizer_ratio", "message_bytes", "kept_share", "recompute_bytes")))
    assert "not known" in app.controls.fields["activation_bytes"].note.value


@pytest.mark.parametrize("value", [-1, "80GB", True, float("nan"), 1e16])
def test_explore_refuses_what_is_no_bytes(value):
    with pytest.raises(InputError, match="memory_limit is bytes, from 0 to"):
        ex.explore(memory_limit=value)


def test_explore_takes_none_for_no_limit():
    app = ex.explore(memory_limit=None, run_on_change=False)
    assert app.controls.settings().limit is None
    app.close()


# ── the picture ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_memory_row_counts_micro_batches_where_no_bytes_are_known():
    curves, _ = both_curves(Settings(memory_limit=8 * GIB).predict().trace, None, memory_limit=8 * GIB)
    assert (curves.title, curves.top, curves.limit) == ("in flight", 4, None)


def test_memory_row_shows_activations_without_a_limit_and_all_with_one():
    trace = Settings(activation_bytes=GIB, parameter_bytes=GIB, message_bytes=0.0).predict().trace
    curves, _ = both_curves(trace, None)
    assert (curves.title, curves.top) == ("activations, GiB", 4)
    curves, _ = both_curves(trace, None, memory_limit=6.5 * GIB)
    assert (curves.title, curves.top) == ("memory, GiB", 8)
    assert curves.limit == (6.5, "device memory, 6.5 GiB")
    assert curves.note == "More than the device has: rank 0 by 1.5 GiB, rank 1 by 512 MiB"


def test_memory_row_tells_of_a_limit_that_lies_far_above():
    trace = Settings(activation_bytes=GIB).predict().trace
    curves, _ = both_curves(trace, None, memory_limit=100 * GIB)
    assert curves.limit is None
    assert curves.top < 5
    assert curves.note == "Device memory, 100 GiB, lies far above this axis"


def test_prediction_and_measurement_share_a_unit():
    small, large = (simulated(activation_bytes=size, parameter_bytes=0) for size in (2.0**20, GIB))
    both = both_curves(small, large)
    assert [curves.title for curves in both] == ["activations, GiB"] * 2
    assert [curves.top for curves in both] == [4 / 1024, 4]


def test_ranks_that_hold_too_much_are_named_the_fullest_first():
    assert over_in_words(np.array([3, 9, 5, 6, 4, 7]), 4) == (
        "rank 1 by 5 bytes, rank 5 by 3 bytes, rank 3 by 2 bytes, 1 more"
    )
    assert over_in_words(np.array([4, 4]), 4) == ""


def test_numbers_have_peak_bytes_and_what_they_were(app):
    assert number(app, "peak memory") == ["8 7 6 5"]
    type_in(app, "activation_bytes", 2 * GIB / 1e6)
    assert number(app, "peak memory") == ["8 7 6 5 → 12 10 8 6"]
    type_in(app, "activation_bytes", 0)
    type_in(app, "parameter_bytes", 0)
    assert number(app, "peak memory") is None


def test_the_pictures_limit_follows_the_control(app):
    assert app.timeline.lines["limit"] is None
    type_in(app, "memory_limit", 7 * GIB / 1e9)
    assert app.timeline.lines["limit"] == {"level": 7, "text": "device memory, 7 GiB"}
    assert app.timeline.note == "More than the device has: rank 0 by 1 GiB"


# ── the place below it ──────────────────────────────────────────────────────────────────────────────────────────────


def test_memory_place_follows_the_picture(app):
    app.places.choice.value = "memory"
    await_true(lambda: "Rank 0 holds 8 GiB at its peak" in app.places.memory.said)
    type_in(app, "memory_limit", 7 * GIB / 1e9)
    await_true(lambda: "1 GiB more than its device has, 7 GiB" in app.places.memory.said)
    type_in(app, "activation_bytes", 0)
    type_in(app, "parameter_bytes", 0)
    await_true(lambda: "No bytes are known here" in app.places.memory.said)


def test_panel_says_why_the_fullest_rank_is_full(panel):
    panel.follow(simulated(), memory_limit=5 * GIB)
    said = text(panel.said)
    # 4 activations of 6 GiB in all; the first backward of 1F1B's rank 0 comes after 4 forwards
    assert "Rank 0 holds 6 GiB at its peak, 3 s, most of it activations (67%)" in said
    assert "4 micro-batches have begun on stage 0 by then" in said
    assert "rank 0 6 GiB over by 1 GiB" in said
    assert "rank 3 3 GiB 2 GiB free" in said


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("naive", "1 micro-batch has begun on stage 0 by then, and keeps its activations until its backward ends"),
        # rank 0 warms up with (v−1)·P + 2(P−1) forwards, and begins one more before its first backward
        ("interleaved_1f1b", "11 micro-batches × stages have begun on stages 0, 4 by then, and keep their activations"),
        ("forward_only", "and keeps its activations until its forward ends"),
    ],
)
def test_panel_counts_what_has_begun(panel, schedule, said):
    panel.follow(simulated(schedule))
    assert said in text(panel.said)


def test_panel_lists_the_holders_of_the_peak_and_of_a_clicked_moment(panel):
    panel.follow(simulated(message_bytes=0.0))
    assert "Who holds the memory of rank 0 at its peak, 3 s" in text(panel.holders)
    assert re.findall(r"activations 0 (\d)", text(panel.holders)) == ["0", "1", "2", "3"]
    panel.chart.chosen = [1.5, 1]  # F0 and F1 have begun
    assert re.findall(r"activations 0 (\d)", text(panel.holders)) == ["0", "1"]
    assert panel.chart.moment == 1.5
    panel.at_peak.click()
    assert "at its peak" in text(panel.holders)
    panel.chart.chosen = [panel.chart.chart["peak"]["time"], 2]
    assert "at its peak" in text(panel.holders)


def test_panel_shows_the_rank_that_is_chosen_while_there_is_one(panel):
    panel.follow(simulated())
    panel.rank.value = 3
    assert "Rank 3 holds 3 GiB" in panel.said
    panel.follow(ex.simulate(ex.schedule("1f1b", n_ranks=2, n_micro_batches=4), ex.Costs(activation_bytes=GIB)))
    assert [value for _, value in panel.rank.options] == [-1, 0, 1]
    assert "Rank 0 holds 2 GiB" in panel.said


def test_panel_draws_a_prediction_behind_what_was_measured(panel):
    trace, predicted = simulated(), simulated(activation_bytes=2 * GIB)
    panel.follow(trace, predicted=predicted)
    assert max(panel.chart.chart["predicted"]["levels"]) == 10
    panel.follow(trace, predicted=simulated(activation_bytes=0, parameter_bytes=0))
    assert panel.chart.chart["predicted"] is None
    panel.follow(trace, predicted=trace)
    assert panel.chart.chart["predicted"] is None


def test_panel_of_many_holders_counts_the_rest(panel):
    panel.follow(ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=20), ex.Costs(activation_bytes=GIB)))
    assert "8 more 8 GiB 40.0%" in text(panel.holders)


def test_chart_has_layers_in_a_common_unit():
    chart = chart_of(memory_stack_info(simulated(optimizer_bytes=2 * GIB, message_bytes=0.0), 1), 7 * GIB)
    assert [(layer["letter"], max(layer["levels"])) for layer in chart["layers"]] == [
        ("P", 1),
        ("G", 1),
        ("O", 2),
        ("A", 3),
    ]
    assert chart["limit"] == {"level": 7, "text": "device memory, 7 GiB"}
    assert chart["top"] > 7
    assert chart_of(memory_stack_info(simulated()), 100 * GIB)["limit"] is None  # it would flatten the layers


def test_a_thinned_chart_keeps_peaks():
    total = np.zeros(10_000, np.int64)
    total[4321] = 9
    rows = _thinned(total)
    assert len(rows) <= 600
    assert total[rows].max() == 9
    assert (np.diff(rows) > 0).all()


# ── compare, sweep and code ─────────────────────────────────────────────────────────────────────────────────────────


def test_compare_puts_first_what_fits_and_says_what_does_not():
    # GPipe holds 8 activations beside 4, 1F1B and ZB-H1 4
    settings = Settings(activation_bytes=GIB, parameter_bytes=GIB, message_bytes=0.0, memory_limit=8 * GIB)
    page, found = compared(settings)
    names, said = list(found), text(page)
    assert names.index("1f1b") < names.index("gpipe")
    assert "GPipe 330 27.3% 8 12, over by 4 GiB" in said
    assert f"Of what fits into the 8 GiB of a device {title_of(names[0])} is the fastest" in said
    # V-Half holds 6 half activations at 4 ranks, so 3 + 4 in all; ZB-H1 holds 4 + 4 as 1F1B
    tight = text(compared(replace(settings, memory_limit=7 * GIB))[0])
    assert "V-Half is the fastest; faster, but too much for it: ZB-V, Interleaved zero bubble, DualPipe." in tight
    assert "None fits into the 1 GiB of a device; " in text(
        compared(Settings(activation_bytes=GIB, parameter_bytes=GIB, memory_limit=GIB))[0]
    )


def test_compare_says_that_a_limit_needs_bytes():
    assert "No bytes are known to hold against the 8 GiB" in text(compared(Settings(memory_limit=8 * GIB))[0])


@pytest.mark.parametrize("schedule", ["zb_1p", "zb_v"])
def test_a_schedule_that_searches_within_the_limit_is_the_same_in_compare_picture_and_code(schedule):
    bytes_known = {"activation_bytes": 6e9, "parameter_bytes": 4e9, "memory_limit": 50e9}
    settings = Settings(schedule=schedule, latency=0.002, **bytes_known)
    trace = settings.predict().trace
    assert ex.peak_bytes(trace).max() <= 50e9
    row = ex.comparison([schedule], n_ranks=4, n_micro_batches=8, costs=settings.share(), memory_limit=50e9).iloc[0]
    assert (row["makespan"], row["peak_bytes"]) == (trace.makespan, ex.peak_bytes(trace).max())
    found = {}
    exec(code_of(settings), found)  # noqa: S102  what the project itself wrote
    assert found["trace"].makespan == trace.makespan


def test_a_search_that_finds_nothing_within_the_limit_is_shown_over_it():
    settings = Settings(schedule="zb_v", activation_bytes=6e9, parameter_bytes=4e9, memory_limit=20e9)
    assert ex.peak_bytes(settings.predict().trace).max() > 20e9


def test_code_has_the_bytes_and_the_device():
    settings = Settings(activation_bytes=6e9, parameter_bytes=4e9, memory_limit=40e9)
    code, found = code_of(settings), {}
    assert "activation_bytes=6e9" in code
    assert "ex.timeline_and_memory(trace, device_bytes=40e9)" in code
    exec(code, found)  # noqa: S102  what the project itself wrote
    assert ex.peak_bytes(found["trace"]).tolist() == ex.peak_bytes(settings.predict().trace).tolist()


@pytest.mark.parametrize("name", ["optimizer_ratio", "kept_share", "forward", "bandwidth", "jitter"])
@pytest.mark.parametrize("value", [-1, math.nan, "2", None, True, [1], 10**400])
def test_numbers_that_no_control_can_stand_at_are_refused(name, value):
    with pytest.raises(InputError, match=f"{name} is a number from .* to .*; got .*; try") as caught:
        ex.explore(**{name: value})
    assert caught.value.argument == name


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [("warm_up", "x", "a whole number"), ("seed", 1.5, "a whole number"), ("options", 3, "a text")],
)
def test_what_is_of_another_kind_than_its_control_is_refused(name, value, what):
    with pytest.raises(InputError, match=f"{name} is {what}; got {value!r}; try"):
        ex.explore(**{name: value})
