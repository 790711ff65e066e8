"""What comparisons show, in numbers and words."""

from dataclasses import replace

import pytest

import explorer as ex
from explorer.core import Kind
from explorer.figures.compare import compare_info, makespans_in_words
from explorer.figures.compare_residuals import difference_in_words, residual_info
from explorer.figures.units import Unit
from tests.figures.test_timeline import unpacked

SECONDS, PLAIN = Unit("s", 1.0), Unit("", 1.0)


def simulated(name="1f1b", n_ranks=4, n_micro_batches=8, **costs):
    program = ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches)
    return ex.simulate(program, ex.Costs.per_rank_share(**costs).for_program(program))


def late(trace, seconds, **changes):
    events = replace(trace.events, start=trace.events.start + seconds, end=trace.events.end + seconds)
    return replace(trace, events=events, **changes)


@pytest.mark.parametrize(
    ("makespans", "words"),
    [
        ((33, 27), "b takes 18.2% less time than a: 27 s instead of 33 s"),
        ((27, 33), "b takes 22.2% more time than a: 33 s instead of 27 s"),
        ((33, 33), "a and b take equally long: 33 s"),
        ((33, 27, 30), "b is the fastest of 3, with 18.2% less time than a, the slowest: 27 s instead of 33 s"),
        ((3, 3, 3), "all 3 take equally long: 3 s"),
        ((0, 0), "a and b take equally long: 0 s"),
    ],
)
def test_makespans_are_told_in_words(makespans, words):
    assert makespans_in_words("abc"[: len(makespans)], makespans, SECONDS) == words


def test_gpipe_and_1f1b_take_equally_long():
    assert ex.compare(simulated("gpipe"), simulated()).layout.title.text == "gpipe and 1f1b take equally long: 33"


def test_compare_puts_traces_on_one_axis_each_begun_at_zero():
    figure = ex.compare(simulated(), late(simulated("zb_h1"), 100))
    assert {trace.xaxis for trace in figure.data} == {None}
    assert min(unpacked(trace.base).min() for trace in figure.data) == 0
    panels = {trace.yaxis for trace in figure.data}
    assert panels == {"y", "y2"} or panels == {"y1", "y2"}
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]


def test_compare_shades_each_trace_as_long_as_it_takes():
    figure = ex.compare(simulated(), simulated("zb_h1"), simulated("naive"))
    assert [shape.x1 for shape in figure.layout.shapes] == [33, 27, 96]


def test_compare_names_each_kind_once_in_the_legend():
    figure = ex.compare(simulated(), simulated("zb_h1"), simulated())
    assert [trace.legendgroup for trace in figure.data if trace.showlegend] == ["F", "B", "I", "W"]


def test_traces_of_one_program_are_told_apart():
    measured = late(simulated(), 0, clock="virtual")
    assert [panel.name for panel in compare_info(simulated(), measured).panels] == ["1f1b, simulated", "1f1b, measured"]
    names = [panel.name for panel in compare_info(simulated(), simulated()).panels]
    assert names == ["1f1b, simulated (1)", "1f1b, simulated (2)"]


def test_names_are_shown_as_they_stand():
    figure = ex.compare(simulated(), simulated(), names=["<b>a</b>", "b"])
    assert figure.layout.annotations[0].text.startswith("<b>&lt;b&gt;a&lt;/b&gt;</b>")


def test_a_measured_trace_gives_the_unit():
    assert compare_info(simulated(forward=0.001, backward=0.002), late(simulated(forward=0.001), 0, clock="virtual"))
    info = compare_info(simulated(forward=1e-3), late(simulated(forward=1e-3), 0, clock="virtual"))
    assert info.unit.name == "ms"
    assert {panel.bars.unit.name for panel in info.panels} == {"ms"}


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda: ex.compare(simulated()), "compare shows 2 to 8 traces; got 1"),
        (lambda: ex.compare(*[simulated()] * 9), "got 9"),
        (lambda: ex.compare(simulated(), 3), "compare draws a Trace; got int"),
        (lambda: ex.compare(simulated(), simulated(), names=["a"]), "names are a list of 2, one for each trace"),
        (lambda: ex.compare(simulated(), simulated(), step=7), "the steps there are: 0"),
        (lambda: ex.residual_chart(simulated(), 3), "residual_chart draws a Trace; got int as measured"),
        (lambda: ex.difference_chart(3), "difference_chart draws a Difference; got int"),
    ],
)
def test_what_cannot_be_compared_is_refused(give, message):
    with pytest.raises(ex.ExplorerError, match=message):
        give()


def test_residual_chart_shows_the_difference_of_each_action_by_kind():
    found = residual_info(simulated(), simulated(backward=2.5))
    assert [(one.kind, set(one.difference.tolist())) for one in found] == [(Kind.F, {0.0}), (Kind.B, {0.5})]
    figure = ex.residual_chart(simulated(), simulated(backward=2.5))
    assert [trace.yaxis for trace in figure.data][-2:] == ["y3", "y3"]
    assert figure.layout.yaxis3.domain[1] < figure.layout.yaxis2.domain[0]


def test_difference_chart_goes_from_the_prediction_to_the_measurement():
    found = ex.explain_difference(simulated(), simulated(backward=2.5, latency=0.25))
    (bars,) = ex.difference_chart(found).data
    assert list(bars.y) == pytest.approx([33, 5.5, 4, 0, 0, 42.5])
    assert list(bars.text) == ["33", "+5.5", "+4", "0", "0", "42.5"]


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"backward": 2.5}, "16.7% more than predicted, most of it durations: 38.5 instead of 33"),
        ({"backward": 1.5}, "16.7% less than predicted, most of it durations: 27.5 instead of 33"),
        ({"latency": 0.25}, "12.1% more than predicted, most of it transfers: 37 instead of 33"),
        ({}, "Measured as predicted: 33"),
    ],
)
def test_a_difference_is_told_in_words(costs, words):
    assert difference_in_words(ex.explain_difference(simulated(), simulated(**costs)), PLAIN) == words
