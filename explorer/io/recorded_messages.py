"""Sends and receives that two ranks have recorded, brought together: what was waiting and what was moving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Events, Kind, Origin, Stream
from explorer.core.clocks import SAME_CLOCK, ClockOffset, Passages, check_causality
from explorer.io.rank_files import Ints

Floats = npt.NDArray[np.float64]

_ASKING = 20e-6  # seconds that a wait takes which finds its message there
_SENT_AS = {Kind.RECV_F: (Kind.SEND_F, -1), Kind.RECV_B: (Kind.SEND_B, 1)}  # and the sending stage, counted from ours


class Ends(NamedTuple):
    """A step of one rank on the clock of all.

    Attributes:
        number: of the step.
        kind, stage, micro_batch: (n_actions,), in the order they ran.
        start: (n_actions,) seconds.
        end: (n_actions,) seconds.
        messages: kind, stage, micro_batch, peer and bytes, each (n_messages,).
        posted: (n_messages,) seconds at which the transport was told.
        wanted: (n_messages,) seconds at which the rank began to wait for it; NaN where it never did.
        got: (n_messages,) seconds at which the rank went on; NaN where it never did.
    """

    number: int
    kind: Ints
    stage: Ints
    micro_batch: Ints
    start: Floats
    end: Floats
    messages: Mapping[str, Ints]
    posted: Floats
    wanted: Floats
    got: Floats

    def moved(self, zero: float) -> Ends:
        """With times that count from `zero`."""
        moments = {name: getattr(self, name) - zero for name in ("start", "end", "posted", "wanted", "got")}
        return self._replace(**moments)

    def waits(self) -> Floats:
        """(n_actions,) seconds before each action in which its rank waited for messages, behind the action before."""
        n = len(self.start)
        waited = np.flatnonzero(~np.isnan(self.got))
        seconds = self.got[waited] - self.wanted[waited]
        following = np.searchsorted(self.start, self.wanted[waited])
        sums = np.bincount(following, weights=seconds, minlength=n)[:n] if n else np.zeros(0)
        gap = self.start - np.concatenate([[-np.inf], self.end[:-1]]) if n else np.zeros(0)
        return np.clip(sums, 0.0, np.maximum(gap, 0.0))

    def slots(self) -> dict[tuple[bool, int, int], int]:
        """(is a backward, stage, micro-batch) → the slot that makes, or needs, what goes between stages."""
        columns = (self.kind.tolist(), self.stage.tolist(), self.micro_batch.tolist())
        return {
            (kind != Kind.F, stage, micro_batch): slot
            for slot, (kind, stage, micro_batch) in enumerate(zip(*columns, strict=True))
            if kind in (Kind.F, Kind.B, Kind.I)
        }


class _End(NamedTuple):
    """One end of a message."""

    rank: int
    stage: int
    micro_batch: int
    kind: Kind
    slot: int
    size: int
    posted: float
    wanted: float
    got: float


def message_events(of_rank: Sequence[Sequence[Ends]], offsets: tuple[ClockOffset, ...] | None) -> Events:
    """A row at each end of every message whose two ends were recorded.

    Args:
        of_rank: the steps of each rank.
        offsets: of the ranks' clocks, where they are not one.

    Raises:
        InputError: if by the clocks a message was there before it was sent.
    """
    pairs = [pair for steps in zip(*of_rank, strict=True) for pair in _pairs(steps)]
    if not pairs:
        return Events.of(step=())
    step, sends, receives = zip(*pairs, strict=True)
    send, receive = (_columns(ends) for ends in (sends, receives))
    _check(send, receive, offsets or (SAME_CLOCK,) * len(of_rank))
    wanted = np.where(np.isnan(receive["wanted"]), receive["posted"], receive["wanted"])
    got = np.where(np.isnan(receive["got"]), wanted, receive["got"])
    seen = got - wanted > _ASKING
    left = send["posted"]
    # where nobody waited, it came some time between the two
    arrived = np.maximum(np.where(seen, got, wanted), left)
    begun = np.maximum(left, np.minimum(wanted, arrived))
    origin = np.where(seen, Origin.MEASURED, Origin.MODELLED)
    return Events.concatenate(
        _rows(step, send, receive["rank"], Stream.SEND, left, arrived, np.zeros(len(left)), origin),
        _rows(step, receive, send["rank"], Stream.RECEIVE, begun, arrived, np.maximum(left - wanted, 0.0), origin),
    )


def _pairs(steps: Sequence[Ends]) -> list[tuple[int, _End, _End]]:
    """The two ends of each message of a step, in the order they were sent."""
    received = {}
    for rank, step in enumerate(steps):
        for end, peer in _ends(step, rank):
            if end.kind in _SENT_AS:
                kind, offset = _SENT_AS[end.kind]
                received[kind, end.stage + offset, end.micro_batch, peer, rank] = end
    pairs = []
    for rank, step in enumerate(steps):
        for end, peer in _ends(step, rank):
            key = end.kind, end.stage, end.micro_batch, rank, peer
            if key in received:
                pairs.append((step.number, end, received[key]))
    return pairs


def _ends(step: Ends, rank: int) -> list[tuple[_End, int]]:
    slots = step.slots()
    names = zip(
        *(step.messages[one].tolist() for one in ("kind", "stage", "micro_batch", "bytes", "peer")), strict=True
    )
    moments = zip(step.posted.tolist(), step.wanted.tolist(), step.got.tolist(), strict=True)
    found = []
    for (kind, stage, micro_batch, size, peer), times in zip(names, moments, strict=True):
        is_backward = kind in (Kind.SEND_B, Kind.RECV_B)
        slot = slots.get((is_backward, stage, micro_batch), -1)
        found.append((_End(rank, stage, micro_batch, Kind(kind), slot, size, *times), peer))
    return found


def _columns(ends: Sequence[_End]) -> dict[str, npt.NDArray[np.float64]]:
    return {name: np.array(column) for name, column in zip(_End._fields, zip(*ends, strict=True), strict=True)}


def _check(send: Mapping[str, Floats], receive: Mapping[str, Floats], offsets: Sequence[ClockOffset]) -> None:
    there = ~np.isnan(receive["got"])
    ranks = (send["rank"][there].astype(np.int64), receive["rank"][there].astype(np.int64))
    check_causality(Passages(*ranks, send["posted"][there], receive["got"][there]), offsets)


def _rows(
    step: Sequence[int],
    ends: Mapping[str, Floats],
    peer: Floats,
    stream: Stream,
    start: Floats,
    end: Floats,
    wait: Floats,
    origin: npt.NDArray[np.int64],
) -> Events:
    return Events.of(
        step=np.array(step),
        rank=ends["rank"],
        stage=ends["stage"],
        micro_batch=ends["micro_batch"],
        kind=ends["kind"],
        slot=ends["slot"],
        stream=stream,
        start=start,
        end=end,
        wait=wait,
        bytes=ends["size"],
        peer=peer,
        origin=origin,
    )
