"""The order DualPipe and DualPipeV share: two streams of micro-batches that meet in every rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Kind
from explorer.errors import ScheduleError

_F, _B, _I, _W = Kind.F, Kind.B, Kind.I, Kind.W


class TwoStreams(NamedTuple):
    """One rank's order over two streams: the near one, whose forwards reach it first, and the far one.

    Attributes:
        kind: (n,) int8.
        far: (n,) int64, 0 near or 1 far.
        turn: (n,) int64, the how-manieth micro-batch of its stream.
        joined: (n,) bool, whether it begins together with the action before.
    """

    kind: npt.NDArray[np.int8]
    far: npt.NDArray[np.int64]
    turn: npt.NDArray[np.int64]
    joined: npt.NDArray[np.bool_]


def two_streams(place: int, n_places: int, n_micro_batches: int) -> TwoStreams:
    """The order of the rank `place` of `n_places` towards the turning point.

    Eight steps: near forwards; near and far in turn; far backwards begin, split; then forwards of one stream run
    together with backwards of the other; at the end weight gradients fill what is idle.

    Args:
        place: 0 is farthest from where the streams turn.
        n_places: number of ranks towards the turning point.
        n_micro_batches: of each stream; at least 2·n_places.
    """
    behind, ahead = place + 1, n_places - 1 - place
    near, far = 0, 1
    steps = [
        _repeat(2 * ahead, (_F, near)),
        _repeat(behind, (_F, near), (_F, far)),
        _repeat(ahead, (_I, far), (_W, far), (_F, far)),
        _main(n_micro_batches - 2 * n_places + behind, apart_at_first=ahead == 0),
        _repeat(ahead, (_B, far), (_F, far), (_B, near), joined=(False, False, True)),
        _split_second_half(behind),
        _repeat(ahead, (_W, near), (_I, near)),
        _repeat(behind, (_W, near)),
    ]
    kind, far_, joined = (np.concatenate(column) for column in zip(*steps, strict=True))
    return _numbered(kind.astype(np.int8), far_.astype(np.int64), joined.astype(np.bool_))


def check_streams(name: str, n_micro_batches: int, least: int, *, even: bool) -> None:
    """Refuse fewer micro-batches than fill both streams, and an odd number where they are shared out evenly.

    Raises:
        ScheduleError: with the nearest legal values.
    """
    if n_micro_batches < least:
        raise ScheduleError(
            f"{name} needs n_micro_batches of at least {least}, twice n_ranks; got {n_micro_batches}; try {least}",
            argument="n_micro_batches",
            legal=(least,),
        )
    if even and n_micro_batches % 2:
        legal = (n_micro_batches - 1, n_micro_batches + 1)
        raise ScheduleError(
            f"{name} sends half of the micro-batches each way, so n_micro_batches is even; got {n_micro_batches}; "
            f"try {legal[0]} or {legal[1]}",
            argument="n_micro_batches",
            legal=legal,
        )


_Step = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


def _repeat(times: int, *actions: tuple[int, int], joined: tuple[bool, ...] = ()) -> _Step:
    """`actions` in turn, so many times: their kinds, their streams and which are joined to the one before."""
    kinds, streams = np.array(actions).T
    together = np.array(joined or (False,) * len(actions))
    return np.tile(kinds, times), np.tile(streams, times), np.tile(together, times)


def _main(times: int, *, apart_at_first: bool) -> _Step:
    """A forward of each stream with a backward of the other; at the turning point the first pair is not joined."""
    kind, far, joined = _repeat(times, (_F, 0), (_B, 1), (_F, 1), (_B, 0), joined=(False, True, False, True))
    if apart_at_first:
        joined[1] = False  # its far backward would have to wait for a forward nobody waits for
    return kind, far, joined


def _split_second_half(times: int) -> _Step:
    """Backwards of far and near in turn; the second half of them keep their weight gradients for later."""
    kind, far, joined = _repeat(times, (_B, 1), (_B, 0))
    kind[times:] = _I
    return kind, far, joined


def _numbered(kind: npt.NDArray[np.int8], far: npt.NDArray[np.int64], joined: npt.NDArray[np.bool_]) -> TwoStreams:
    """Count the micro-batches of each stream, and give each W the oldest I that still waits for it."""
    turn = np.empty(len(kind), np.int64)
    for stream in (0, 1):
        for kinds in ((_F,), (_B, _I)):
            rows = np.flatnonzero((far == stream) & np.isin(kind, kinds))
            turn[rows] = np.arange(len(rows))
    inputs, weights = np.flatnonzero(kind == _I), np.flatnonzero(kind == _W)
    far[weights], turn[weights] = far[inputs], turn[inputs]
    return TwoStreams(kind, far, turn, joined)
