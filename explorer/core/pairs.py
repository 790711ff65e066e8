"""Which send meets which receive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import MESSAGE_KINDS, Kind, among
from explorer.core.program import Program
from explorer.core.rules import neighbourhood
from explorer.errors import ProgramError

Indices = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """The messages of a program, as columns of equal length.

    Attributes:
        send: (n_messages,) int64, index of the sending action.
        receive: (n_messages,) int64, index of the receiving action.
    """

    send: Indices
    receive: Indices


class _Ends(NamedTuple):
    """One end of each message: where it lies, and between which ranks and stages it goes."""

    row: Indices
    route: Indices  # direction, micro-batch, segment, from and to rank as one number
    boundary: Indices  # the stage before the boundary that is crossed


def message_pairs(program: Program) -> Pairs:
    """Match the sends and receives of `program`.

    A message goes to the rank of the next stage (or the one before, for gradients) unless its action names a peer;
    so skip connections, which pass over a stage, can be written too. Between two ranks, those across the same
    boundary between stages meet first, and the rest in order.

    Raises:
        ProgramError: if a send has no receive or the other way round, or goes nowhere.
    """
    _check_range(program)
    sends, receives = _ends(program, Kind.SEND_F, Kind.SEND_B), _ends(program, Kind.RECV_F, Kind.RECV_B)
    factor = program.n_stages + 1
    exact = _match(sends.route * factor + sends.boundary, receives.route * factor + receives.boundary)
    rest_send, rest_receive = _without(sends, exact[0]), _without(receives, exact[1])
    found = _match(sends.route[rest_send], receives.route[rest_receive])
    send = np.concatenate([exact[0], rest_send[found[0]]])
    receive = np.concatenate([exact[1], rest_receive[found[1]]])
    for ends, matched in ((sends, send), (receives, receive)):
        if len(matched) < len(ends.row):
            raise _lonely(program, int(ends.row[_without(ends, matched)[0]]))
    order = np.argsort(sends.row[send], kind="stable")
    return Pairs(sends.row[send][order], receives.row[receive][order])


def is_message(program: Program) -> npt.NDArray[np.bool_]:
    """(n_actions,) whether each action is a send or a receive."""
    return among(program.kind, *MESSAGE_KINDS)


def _check_range(program: Program) -> None:
    outside = (program.stage < 0) | (program.stage >= program.n_stages)
    outside |= (program.micro_batch < 0) | (program.micro_batch >= program.n_micro_batches)
    outside |= (program.segment < 0) | (program.segment >= program.n_segments)
    outside &= is_message(program)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        has = f"stages 0–{program.n_stages - 1} and micro-batches 0–{program.n_micro_batches - 1}"
        raise _error(program, index, f"this program has {has}; got {program.action(index)}, which is outside")


def _ends(program: Program, forward: Kind, backward: Kind) -> _Ends:
    row = np.flatnonzero((program.kind == forward) | (program.kind == backward))
    back = program.kind[row] == backward
    stage, micro_batch = program.stage[row].astype(np.int64), program.micro_batch[row]
    sends = forward == Kind.SEND_F
    other = stage + np.where(back == sends, -1, 1)  # the stage at the other end, if none is passed over
    here, there = program.rank_of_action[row].astype(np.int64), program.peer[row].astype(np.int64)
    outside = ((other < 0) | (other >= program.n_stages)) & (there < 0) | (there >= program.n_ranks)
    if outside.any():
        raise _nowhere(program, int(row[np.flatnonzero(outside)[0]]))
    neighbour = program.placement.rank_of(np.clip(other, 0, program.n_stages - 1), micro_batch)
    there = np.where(there < 0, neighbour, there)
    source, target = (here, there) if sends else (there, here)
    shape = (2, program.n_micro_batches, program.n_segments, program.n_ranks, program.n_ranks)
    columns = (back.astype(np.int64), micro_batch.astype(np.int64), program.segment[row].astype(np.int64))
    route = np.ravel_multi_index((*columns, source, target), shape)
    return _Ends(row, np.asarray(route, np.int64), np.minimum(stage, other) + 1)


def _without(ends: _Ends, matched: Indices) -> Indices:
    """Positions in `ends` that are not among those matched."""
    left = np.ones(len(ends.row), np.bool_)
    left[matched] = False
    return np.flatnonzero(left)


def _match(left: Indices, right: Indices) -> tuple[Indices, Indices]:
    """Positions in both with equal keys; of several equal ones the first meets the first."""
    again = _occurrence(left), _occurrence(right)
    factor = max(int(count.max(initial=0)) for count in again) + 1
    keys = left * factor + again[0], right * factor + again[1]
    _, at_left, at_right = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    return at_left.astype(np.int64), at_right.astype(np.int64)


def _occurrence(keys: Indices) -> Indices:
    """How many equal keys lie before each."""
    order = np.argsort(keys, kind="stable")
    place = np.arange(len(keys))
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[order][1:] != keys[order][:-1]
    count = np.empty(len(keys), np.int64)
    count[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return count


def _lonely(program: Program, index: int) -> ProgramError:
    word = "receive" if program.kind[index] in (Kind.SEND_F, Kind.SEND_B) else "send"
    problem = f"every message has a send and a receive; {program.action(index)} has no {word}"
    return _error(program, index, f"{problem}; add its other end or remove it")


def _nowhere(program: Program, index: int) -> ProgramError:
    action = program.action(index)
    return _error(
        program,
        index,
        f"a message goes to another stage of 0–{program.n_stages - 1} or to a rank; {action} goes nowhere",
    )


def _error(program: Program, index: int, problem: str) -> ProgramError:
    rank = int(program.rank_of_action[index])
    slot = int(program.slot_of_action[index] - program.rank_offsets[rank])
    where = f"rank {rank}, slot {slot}: {neighbourhood(program, rank, slot)}"
    return ProgramError(f"{problem} ({where})", rank=rank, slot=slot)
