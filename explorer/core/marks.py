"""What is to be said of a single moment of a trace."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """A moment with a sentence to it.

    Attributes:
        step: that it is in.
        rank: that it is on.
        time: seconds, on the trace's clock.
        text: what there was, such as "kill rank=2 step=1".
    """

    step: int
    rank: int
    time: float
    text: str
