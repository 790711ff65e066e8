"""What the analyses say to something that is no trace."""

import pytest

import explorer as ex
from explorer.errors import InputError

PROGRAM = ex.schedule("gpipe", n_ranks=2, n_micro_batches=2)


class Holder:
    """Has a trace, as a run does."""

    trace = ex.simulate(PROGRAM)


@pytest.mark.parametrize("function", [ex.phases, ex.peak_bytes, ex.memory_over_time, ex.in_flight_over_time])
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
