"""A trace's bars: where each stands, how long it is, and what is written in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Kind, Trace
from explorer.core.events import Stream
from explorer.figures.lanes import Share, shared_lanes
from explorer.figures.palette import KIND_LETTERS

MOST_LETTERED = 3000  # bars; with more there is no room for text, and it would only make the file large
BELOW = 0.44  # of a lane, from its middle to that of a message's bar
_WIDTH = 900.0  # pixels that a timeline is about wide
_LETTER, _NUMBERED, _STAGED = 10.0, 20.0, 32.0  # pixels that "F", "F12" and "3F12" need
_MOST_LETTERED_RANKS = 48  # with more, a lane is too low for text


class Bars(NamedTuple):
    """Bars of one kind; all columns (n,).

    Attributes:
        kind: of all of them.
        lane: float64, rank they are drawn on, and a little more for what is drawn below it.
        share: of the lane.
        stage, micro_batch: int32, −1 = does not apply.
        start, duration, wait: float64, seconds.
        text: str, what is written in each; empty where there is no room for any.
    """

    kind: Kind
    lane: npt.NDArray[np.float64]
    share: Share
    stage: npt.NDArray[np.int32]
    micro_batch: npt.NDArray[np.int32]
    start: npt.NDArray[np.float64]
    duration: npt.NDArray[np.float64]
    wait: npt.NDArray[np.float64]
    text: list[str]


def bars_of(trace: Trace, span: float) -> list[Bars]:
    """A trace's bars by kind; text where they are long enough for it, if the whole is `span` seconds long."""
    events, share = trace.events, shared_lanes(trace.events)
    lettered = len(events) <= MOST_LETTERED and trace.n_ranks <= _MOST_LETTERED_RANKS and 0 < span < np.inf
    found = []
    for kind in (Kind(int(code)) for code in np.unique(events.kind)):
        rows = np.flatnonzero(events.kind == kind)
        below = np.where(events.stream[rows] == Stream.COMPUTE, 0.0, BELOW)
        bars = Bars(
            kind,
            np.asarray(events.rank[rows] + below, np.float64),
            share.take(rows),
            events.stage[rows],
            events.micro_batch[rows],
            events.start[rows],
            events.end[rows] - events.start[rows],
            events.wait[rows],
            [],
        )
        writes = lettered and not below.any()
        found.append(bars._replace(text=_texts(bars, _WIDTH / span, trace)) if writes else bars)
    return found


def _texts(bars: Bars, pixels_per_second: float, trace: Trace) -> list[str]:
    """As much of stage, letter and micro-batch as fits; the stage only where a rank has several."""
    letter = KIND_LETTERS[bars.kind]
    staged = trace.program.n_stages > trace.n_ranks
    texts = []
    widths = (bars.duration * pixels_per_second).tolist()
    for width, stage, micro_batch in zip(widths, bars.stage.tolist(), bars.micro_batch.tolist(), strict=True):
        number = "" if micro_batch < 0 else str(micro_batch)
        if staged and width >= _STAGED:
            texts.append(f"{stage}{letter}{number}")
        elif width >= _NUMBERED:
            texts.append(f"{letter}{number}")
        else:
            texts.append(letter if width >= _LETTER else "")
    return texts if any(texts) else []
