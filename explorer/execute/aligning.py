"""The reports of ranks on several machines, brought onto the clock of rank 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.core.clocks import SAME_CLOCK, ClockOffset, Comparison, Passages, check_causality, corrected, widest
from explorer.execute._torch_ranks import Parcel
from explorer.execute.events import Message, SlotEnd, Updated
from explorer.execute.faults import Injected
from explorer.execute.hooks import Hook


class RankClock:
    """A rank's clock, as rank 0's.

    Args:
        comparisons: (time on the rank's own clock, seconds ahead, at least, at most) of each.
    """

    def __init__(self, comparisons: Sequence[Sequence[float]]) -> None:
        self._comparisons = [Comparison(time, ClockOffset(*offset)) for time, *offset in comparisons]
        self.offset = widest(self._comparisons)

    def note(self, comparison: Sequence[float]) -> None:
        """One more comparison; what is asked for from now on lies behind the last but one."""
        time, *offset = comparison
        last = Comparison(time, ClockOffset(*offset))
        self._comparisons = [self._comparisons[-1], last]
        self.offset = widest([Comparison(time, self.offset), last])

    def seconds(self, own: float) -> float:
        """On rank 0's clock, of seconds on the rank's."""
        if self.offset == SAME_CLOCK or math.isnan(own):
            return own
        return float(corrected(np.array([own]), self._comparisons)[0])

    def report(self, what: str, value: Any) -> Any:
        """What a report holds, on rank 0's clock."""
        if what == "begin":
            return self.seconds(value)
        return [self._row(row) for row in value] if what == "rows" else value

    def _row(self, row: Any) -> Any:
        on = self.seconds
        if isinstance(row, SlotEnd):
            moments = tuple((on(begun), on(ended)) for begun, ended in row.moments)
            return replace(row, begun=on(row.begun), ended=on(row.ended), moments=moments)
        if isinstance(row, Parcel):
            return row._replace(posted=on(row.posted), wanted=on(row.wanted), got=on(row.got))
        if isinstance(row, (Updated, Injected)):
            return replace(row, begun=on(row.begun))
        return row


class Passing(Hook):
    """Hears of messages, to hold the clocks against them."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def message(self, event: Message) -> None:
        """Keep it, if its arrival was seen."""
        if event.seen:
            self._messages.append(event)

    def check(self, offsets: Sequence[ClockOffset]) -> None:
        """Refuse clocks by which a message was there before it was sent.

        Raises:
            InputError: naming the ranks.
        """
        rows = [(one.source, one.action.peer, one.left, one.arrived) for one in self._messages]
        if rows:
            source, target, left, there = (np.array(column) for column in zip(*rows, strict=True))
            check_causality(Passages(source, target, left, there), offsets)
