"""What the timeline shows, as numbers and texts; not pixels."""

import base64
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


def together():
    """F0 from 0 to 1, F1 and B0 together from 1 to 3, B1 from 3 to 5, on one rank."""
    program = ex.schedule("1f1b", n_ranks=1, n_micro_batches=2)
    events = ex.Events.of(
        kind=(ex.Kind.F, ex.Kind.F, ex.Kind.B, ex.Kind.B),
        stage=0,
        micro_batch=(0, 1, 0, 1),
        start=(0.0, 1.0, 1.0, 3.0),
        end=(1.0, 3.0, 3.0, 5.0),
    )
    return ex.Trace(events, program)


def unpacked(column):
    """A column as plotly writes it, read back."""
    values = np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"])
    return values.reshape([int(n) for n in column.get("shape", str(len(values))).split(",")])


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


def test_what_runs_together_is_drawn_one_above_the_other():
    forward, backward = ex.timeline(together()).data  # one trace a kind still
    high = 0.78
    assert forward.width.tolist() == pytest.approx([high, high / 2])
    assert backward.width.tolist() == pytest.approx([high / 2, high])
    assert forward.y.tolist() == pytest.approx([0, -high / 4])  # the lanes' axis goes down
    assert backward.y.tolist() == pytest.approx([high / 4, 0])
    assert [*forward.text, *backward.text] == ["F0", "F1", "B0", "B1"]


def test_lanes_are_higher_where_bars_share_them():
    alone = ex.simulate(ex.schedule("dualpipev", n_ranks=4, n_micro_batches=8), ex.Costs())
    assert ex.timeline(alone).layout.height - ex.timeline(simulated(n_ranks=4)).layout.height == 4 * 16
    assert [bar.legendgroup for bar in ex.timeline(alone).data] == ["F", "B", "I", "W"]


def test_a_prediction_behind_shares_its_lanes_too():
    faint, _, solid, _ = ex.timeline(together(), predicted=together()).data
    assert faint.width.tolist() == pytest.approx([0.94, 0.47])
    assert solid.width.tolist() == pytest.approx([0.62, 0.31])


def test_times_lose_nothing_that_an_enlargement_could_show():
    costs = {"forward": 0.0123, "backward": 0.0311, "latency": 1e-5}
    trace = simulated(n_ranks=4, n_micro_batches=512, **costs)
    info = timeline_info(trace)
    for drawn, bars in zip(timeline_traces(info), info.bars, strict=True):
        start = unpacked(drawn.base)
        assert np.abs(start - bars.start * info.unit.factor).max() <= 1e-6 * bars.duration.min() * info.unit.factor
        assert drawn.x == pytest.approx(bars.duration * info.unit.factor, rel=1e-7)


def test_what_is_told_of_a_bar_is_its_own():
    info = timeline_info(simulated(n_ranks=2, forward=(1.0, 3.0)))
    forward, _ = timeline_traces(info)
    assert "stage %{customdata[0]:d}, micro-batch %{customdata[1]:d}" in forward.hovertemplate
    assert forward.customdata.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert "takes %{hovertext[0]:.4~g}<br>waited %{hovertext[1]:.4~g}" in forward.hovertemplate
    assert unpacked(forward.hovertext)[:, 0].tolist() == [1, 1, 1, 3, 3, 3]
    assert unpacked(forward.hovertext)[:, 1].tolist() == info.bars[0].wait.tolist()
    assert "takes 2<br>waited 0<" in timeline_traces(timeline_info(together()))[1].hovertemplate  # the same for both


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
    assert unpacked(figure.data[1].base)[0] == pytest.approx(start)


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
