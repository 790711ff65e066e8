"""Clocks of several machines brought onto one: how far each is ahead, and how surely that is known.

A rank asks another for the time and notes when it asked and when the answer came. What the other's clock showed lies
between the two, whichever way took longer:

    sent − reached  ≤  offset  ≤  back − answered            offset = own clock − the other's

The shortest round trip says most. Source: Mills et al. 2010, Network Time Protocol Version 4, RFC 5905, section 8; that
the interval holds however unlike the two ways are is Cristian 1989, Distributed Computing 3(3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.errors import InputError

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int64]


class RoundTrip(NamedTuple):
    """A question and its answer, seconds.

    Attributes:
        sent: the asker's clock when it asked.
        reached: the other's clock when the question was there.
        answered: the other's clock when it answered.
        back: the asker's clock when the answer was there.
    """

    sent: float
    reached: float
    answered: float
    back: float

    @property
    def seconds(self) -> float:
        """On the way, both ways together."""
        return (self.back - self.sent) - (self.answered - self.reached)


class ClockOffset(NamedTuple):
    """How many seconds a rank's clock is ahead of rank 0's: surely from `low` to `high`, `seconds` is used."""

    seconds: float
    low: float
    high: float


SAME_CLOCK = ClockOffset(0.0, 0.0, 0.0)


def offset_of(trips: Sequence[RoundTrip]) -> ClockOffset:
    """How far the asker's clock is ahead of the other's, from the shortest of `trips`.

    Raises:
        InputError: if there is none, or none that can have been: an answer is not there before it is given.

    Example:
        >>> offset_of([RoundTrip(sent=10.0, reached=3.25, answered=3.5, back=10.75)])
        ClockOffset(seconds=7.0, low=6.75, high=7.25)
    """
    possible = [trip for trip in trips if trip.seconds >= 0]
    if not possible:
        raise InputError(
            f"a clock is compared by at least one round trip of 0 seconds or more; got {len(trips)}, none of them so; "
            "ask again",
            argument="trips",
        )
    trip = min(possible, key=lambda one: one.seconds)
    low, high = trip.sent - trip.reached, trip.back - trip.answered
    return ClockOffset((low + high) / 2, low, high)


class Comparison(NamedTuple):
    """An offset, and when it was found: seconds on the rank's own clock."""

    time: float
    offset: ClockOffset


def corrected(own: Floats, comparisons: Sequence[Comparison]) -> Floats:
    """(n,) seconds on rank 0's clock, of `own`, seconds on a rank's own clock.

    Between two comparisons the offset is taken to change evenly: clocks drift. Before the first and behind the last
    it is theirs.
    """
    times = [one.time for one in comparisons]
    return np.asarray(own - np.interp(own, times, [one.offset.seconds for one in comparisons]))


def widest(comparisons: Sequence[Comparison]) -> ClockOffset:
    """One offset that says what all `comparisons` say: the first's, in an interval that holds all of theirs."""
    offsets = [one.offset for one in comparisons]
    return ClockOffset(offsets[0].seconds, min(one.low for one in offsets), max(one.high for one in offsets))


class Passages(NamedTuple):
    """Messages as both ends saw them, brought onto one clock.

    Attributes:
        source: (n,) rank each left.
        target: (n,) rank it went to.
        left: (n,) seconds at which it was sent.
        there: (n,) seconds by which it had been received.
    """

    source: Ranks
    target: Ranks
    left: Floats
    there: Floats


def check_causality(passages: Passages, offsets: Sequence[ClockOffset]) -> None:
    """Refuse clocks by which a message was there before it was sent, by more than they are uncertain.

    Args:
        passages: the messages.
        offsets: of each rank.

    Raises:
        InputError: naming the two ranks and by how much.
    """
    half = np.array([(one.high - one.low) / 2 for one in offsets])
    early = passages.left - passages.there
    excess = early - half[passages.source] - half[passages.target]
    if not len(excess) or excess.max() <= 0:
        return
    worst = int(excess.argmax())
    source, target = int(passages.source[worst]), int(passages.target[worst])
    raise InputError(
        f"a message arrives after it was sent; by their clocks one from rank {source} to rank {target} was there "
        f"{early[worst] * 1e6:.0f} µs before, and the two are known to {(half[source] + half[target]) * 1e6:.0f} µs; "
        f"{int((excess > 0).sum())} of {len(excess)} messages say so: one of the clocks was set meanwhile; record again"
    )
