"""Clocks that are skewed on purpose, and what round trips say of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from explorer.core.clocks import (
    SAME_CLOCK,
    ClockOffset,
    Comparison,
    Passages,
    RoundTrip,
    check_causality,
    corrected,
    offset_of,
    widest,
)
from explorer.errors import InputError


def asked(at: float, *, ahead: float, out: float, back: float, thinking: float = 0.25) -> RoundTrip:
    """A question at true time `at` by a clock that is `ahead`, on its way `out` and `back` seconds."""
    reached = at + out
    answered = reached + thinking
    return RoundTrip(at + ahead, reached, answered, answered + back + ahead)


WAYS = st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2)), min_size=1, max_size=8)


@given(st.floats(-1e6, 1e6), WAYS)
def test_the_true_offset_lies_in_the_interval_however_unlike_the_ways_are(ahead, ways):
    trips = [asked(10.0 * n, ahead=ahead, out=out, back=back) for n, (out, back) in enumerate(ways)]
    offset = offset_of(trips)
    assert offset.low - 1e-6 <= ahead <= offset.high + 1e-6
    # half of the shortest round trip is what may be wrong
    assert abs(offset.seconds - ahead) <= min(map(sum, ways)) / 2 + 1e-6
    assert offset.high - offset.low == pytest.approx(min(map(sum, ways)), abs=1e-6)


def test_equal_ways_give_the_offset_itself():
    assert offset_of([asked(3.0, ahead=-7.5, out=0.5, back=0.5)]) == ClockOffset(-7.5, -8.0, -7.0)


def test_the_shortest_round_trip_is_taken():
    slow, quick = asked(0.0, ahead=1.0, out=4.0, back=0.0), asked(9.0, ahead=1.0, out=0.25, back=0.25)
    assert offset_of([slow, quick, slow]) == ClockOffset(1.0, 0.75, 1.25)


@pytest.mark.parametrize("trips", [[], [RoundTrip(1.0, 5.0, 6.0, 1.5)]])
def test_no_possible_round_trip_is_refused(trips):
    with pytest.raises(InputError, match="at least one round trip of 0 seconds or more"):
        offset_of(trips)


def test_a_clock_that_drifts_is_corrected_evenly_between_two_comparisons():
    first, last = Comparison(100.0, ClockOffset(2.0, 1.9, 2.1)), Comparison(200.0, ClockOffset(3.0, 2.8, 3.2))
    own = np.array([50.0, 100.0, 150.0, 200.0, 300.0])
    assert corrected(own, [first, last]).tolist() == [48.0, 98.0, 147.5, 197.0, 297.0]
    assert widest([first, last]) == ClockOffset(2.0, 1.9, 3.2)


def passages(*rows):
    source, target, left, there = zip(*rows, strict=True)
    return Passages(np.array(source), np.array(target), np.array(left), np.array(there))


def test_messages_that_arrive_after_they_left_are_accepted():
    check_causality(passages((0, 1, 1.0, 1.0), (1, 0, 2.0, 5.0)), [SAME_CLOCK, SAME_CLOCK])
    check_causality(passages((0, 1, 1.0, 0.9)), [SAME_CLOCK, ClockOffset(4.0, 3.875, 4.125)])  # within ± 0.125
    check_causality(Passages(*np.zeros((2, 0), np.int64), *np.zeros((2, 0))), [SAME_CLOCK])


def test_a_message_that_arrives_before_it_left_is_refused_with_ranks_and_amount():
    message = (
        r"from rank 2 to rank 1 was there 1500 µs before, and the two are known to 500 µs; 1 of 2 messages say so: .*; "
        "record again"
    )
    offsets = [SAME_CLOCK, SAME_CLOCK, ClockOffset(1.0, 0.9995, 1.0005)]
    with pytest.raises(InputError, match=message):
        check_causality(passages((2, 1, 1.0015, 1.0), (1, 2, 1.0, 3.0)), offsets)
