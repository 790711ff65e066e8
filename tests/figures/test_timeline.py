"""What the timeline shows, as numbers and texts; not pixels."""

import dataclasses
import json

import numpy as np
import pytest

import explorer as ex
from explorer.figures.palette import KIND_COLORS
from explorer.figures.timeline import timeline_info, timeline_traces


def simulated(name="1f1b", n_ranks=2, n_micro_batches=3, **costs):
    return ex.simulate(ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches), ex.Costs(**costs))


def measured(trace, n_steps=1, clock="virtual"):
    """`trace` as if measured, its step repeated."""
    steps = []
    for step in range(n_steps):
        shift = step * trace.makespan
        columns = {**trace.events.columns(), "start": trace.events.start + shift, "end": trace.events.end + shift}
        steps.append(ex.Events.of(**{**columns, "step": step}))
    return ex.Trace(ex.Events.concatenate(*steps), trace.program, clock=clock)


def test_timeline_has_a_bar_for_every_action():
    # rank 0  F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
    forward, backward = timeline_info(simulated()).bars
    on_rank_0 = forward.lane == 0
    assert (forward.kind, backward.kind) == (ex.Kind.F, ex.Kind.B)
    assert forward.start[on_rank_0].tolist() == [0, 1, 6]
    assert backward.start[backward.lane == 0].tolist() == [4, 7, 10]
    assert backward.duration.tolist() == [2] * 6
    assert backward.wait[backward.lane == 0].tolist() == [2, 0, 1]
    assert [text for text, here in zip(forward.text, on_rank_0, strict=True) if here] == ["F0", "F1", "F2"]


def test_timeline_draws_messages_below_their_senders_lane():
    info = timeline_info(simulated(latency=0.5))
    sent = next(bars for bars in info.bars if bars.kind == ex.Kind.SEND_F)
    assert np.floor(sent.lane).tolist() == [0, 0, 0]
    assert (sent.lane % 1 > 0.4).all()
    assert sent.duration.tolist() == [0.5] * 3


@pytest.mark.parametrize("n_micro_batches", [3, 300])
def test_timeline_has_as_many_traces_whatever_the_number_of_bars(n_micro_batches):
    trace = simulated(n_micro_batches=n_micro_batches, latency=0.5)
    figure = ex.timeline(trace, predicted=trace)
    assert [bar.legendgroup for bar in figure.data] == ["F", "B", "SEND_F", "SEND_B"] * 2
    assert {bar.legendgroup: bar.marker.color for bar in figure.data} == {
        kind.name: KIND_COLORS[kind] for kind in (ex.Kind.F, ex.Kind.B, ex.Kind.SEND_F, ex.Kind.SEND_B)
    }


def test_timeline_writes_less_into_bars_that_are_narrower():
    def texts(n_micro_batches):
        return [bars.text for bars in timeline_info(simulated(n_micro_batches=n_micro_batches)).bars]

    assert texts(10)[0][:2] == ["F0", "F1"]  # 1 of 33 of 900 pixels
    assert texts(25)[0][:2] == ["F", "F"]  # 1 of 78
    assert texts(60)[0] == []  # 1 of 183
    assert texts(1000) == [[], []]


def test_timeline_names_the_stage_where_a_rank_has_several():
    program = ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=2)
    assert "2F1" in timeline_info(ex.simulate(program)).bars[0].text


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("simulated", "simulated"),
        ("virtual", "virtual ranks: measured operations, modelled links"),
        ("real", "real clocks"),
    ],
)
def test_title_says_what_the_clock_was(clock, words):
    assert timeline_info(measured(simulated(), clock=clock)).title == f"1f1b · 2 ranks, 3 micro-batches · {words}"


def test_every_percentage_names_its_denominator():
    assert timeline_info(simulated()).subtitle == "makespan 12 · idle 25.0% of ranks × makespan"


@pytest.mark.parametrize(
    ("seconds", "clock", "name", "start"),
    [(1, "simulated", "", 4), (1, "virtual", "s", 4), (1e-3, "virtual", "ms", 4), (1e-6, "real", "µs", 4)],
)
def test_times_have_the_unit_that_fits(seconds, clock, name, start):
    trace = measured(simulated(forward=seconds), clock=clock)
    figure = ex.timeline(trace)
    assert figure.layout.xaxis.title.text == (f"time ({name})" if name else "time")
    assert figure.data[1].base[0] == pytest.approx(start)


def test_steps_are_marked_where_they_begin():
    assert timeline_info(measured(simulated(), n_steps=3)).steps == [(0, 0.0), (1, 12.0), (2, 24.0)]
    assert timeline_info(simulated()).steps == []


def test_prediction_is_faint_and_behind_and_shares_the_legend():
    info = timeline_info(measured(simulated()), predicted=simulated(backward=3))
    faint, solid = timeline_traces(info)[:2], timeline_traces(info)[2:]
    assert all(bar.opacity < 0.5 and not bar.showlegend for bar in faint)
    assert all(bar.opacity == 1 and bar.showlegend for bar in solid)
    assert "predicted, makespan" in info.subtitle


def test_prediction_alone_is_shown_before_anything_has_run():
    predicted = simulated()
    nothing = ex.Trace(ex.Events.of(step=()), predicted.program, clock="virtual")
    figure = ex.timeline(nothing, predicted=predicted)
    assert [bar.showlegend for bar in figure.data] == [True, True]


def test_a_programs_name_is_shown_as_text():
    trace = simulated()
    nasty = dataclasses.replace(trace, program=dataclasses.replace(trace.program, name="<img src=x onerror=alert(1)>"))
    assert timeline_info(nasty).title.startswith("&lt;img src=x onerror=alert(1)&gt; ·")
    assert "<img" not in json.dumps(json.loads(ex.timeline(nasty).to_json()))


@pytest.mark.parametrize("draw", [ex.timeline, ex.memory, ex.timeline_and_memory])
def test_what_is_not_a_trace_is_refused_with_advice(draw):
    with pytest.raises(ex.ExplorerError, match=r"draws a Trace; got Program as trace; make one with explorer.simulate"):
        draw(simulated().program)
    with pytest.raises(ex.ExplorerError, match="got 3 behind 2; simulate the same program"):
        draw(simulated(), predicted=simulated(n_ranks=3))
