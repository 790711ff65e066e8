"""What the analyses say to something that is no trace."""

import pytest

import explorer as ex
from explorer.errors import InputError

PROGRAM = ex.schedule("gpipe", n_ranks=2, n_micro_batches=2)


class Holder:
    """Has a trace, as a run does."""

    trace = ex.simulate(PROGRAM)


ALL = [
    *(ex.phases, ex.peak_bytes, ex.memory_over_time, ex.in_flight_over_time),
    *(ex.idle_causes, ex.idle_intervals, ex.idle_summary, ex.critical_path, ex.slack, ex.sensitivity, ex.gains),
]


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (PROGRAM, r"needs a Trace; got Program; make one with explorer\.simulate\(program\)"),
        (Holder(), r"needs a Trace; got Holder; give its \.trace"),
        (None, r"needs a Trace; got NoneType; make one with explorer\.simulate or explorer\.execute"),
        ([1.0], "needs a Trace; got list; make one with"),
    ],
)
def test_what_is_no_trace_is_refused_with_what_would_do(function, value, message):
    with pytest.raises(InputError, match=message) as caught:
        function(value)
    assert caught.value.argument == "trace"


@pytest.mark.parametrize("function", [ex.peak_bytes, ex.memory_over_time])
@pytest.mark.parametrize("category", ["activations", 3, 3.0])
def test_what_is_no_category_is_refused_and_not_empty(function, category):
    message = r"an explorer\.Category: PARAMETERS, .*; got '.*'; try Category\.ACTIVATIONS"
    with pytest.raises(InputError, match=message):
        function(Holder.trace, category=category)


@pytest.mark.parametrize("function", [ex.sensitivity, ex.gains])
def test_a_trace_in_which_nothing_ran_cannot_gain(function):
    message = r"needs a trace in which something ran; got one without computation; simulate or execute its program"
    with pytest.raises(InputError, match=message) as caught:
        function(ex.Trace(ex.Events.of(step=()), PROGRAM))
    assert caught.value.argument == "trace"


@pytest.mark.parametrize("less", [0, 1.5, -0.1, "all", None, True, float("nan")])
def test_what_is_no_share_is_refused(less):
    with pytest.raises(InputError, match=r"less is a share above 0 and at most 1; got .*; try 0\.1") as caught:
        ex.sensitivity(Holder.trace, less=less)
    assert caught.value.argument == "less"


def test_events_of_ranks_that_the_program_lacks_make_no_trace():
    wider = ex.simulate(ex.schedule("gpipe", n_ranks=3, n_micro_batches=2))
    with pytest.raises(InputError, match=r"its program's, from 0 to 1; got 2 in row 8 .*or give the program that ran"):
        ex.Trace(wider.events, PROGRAM)


@pytest.mark.parametrize("function", [ex.idle_causes, ex.critical_path, ex.slack, ex.gains])
def test_a_program_that_cannot_finish_is_refused_as_by_check(function):
    stuck = ex.Program.from_orders("own", PROGRAM.placement, 2, ["0F0 0F1 0B0 0B1", "1B0 1F0 1F1 1B1"])
    with pytest.raises(ex.ExplorerError, match="wait for each other in a circle"):
        function(ex.Trace(Holder.trace.events, stuck))
