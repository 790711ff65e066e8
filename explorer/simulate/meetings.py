"""Programs whose sends and receives meet by a rule: when each slot runs and each message moves."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import (
    Costs,
    Events,
    Kind,
    Meetings,
    MessageRule,
    Origin,
    Program,
    Stream,
    Trace,
    is_message,
    meetings_of,
    refuse_hang,
)
from explorer.errors import ProgramError
from explorer.simulate.layout import Floats, modelled_memory
from explorer.simulate.plan import Plan, Solver


def trace_of_meetings(program: Program, costs: Costs, rule: MessageRule, solve: Solver) -> Trace:
    """The trace of `program` where its messages meet by `rule`, its times found by `solve`.

    Raises:
        ProgramError: if the program is incomplete or has no messages.
        CircularWaitError: if its messages wait for each other in a circle.
    """
    meetings = _kept(program, rule)
    start, end = solve(_plan(meetings, costs), meetings.order)
    times = _times(meetings, start, end)
    memory = modelled_memory(meetings.links, costs, times.start, times.end)
    return Trace(_lay_out(meetings, costs, times), program, memory, costs)


@lru_cache(maxsize=4)
def _kept(program: Program, rule: MessageRule) -> Meetings:
    meetings = meetings_of(program, rule)
    if not is_message(program).any():
        raise ProgramError(
            f"messages meet by the rule {rule!r} where there are some; this program has none; "
            "add them with explorer.add_messages"
        )
    refuse_hang(meetings)
    return meetings


def _plan(meetings: Meetings, costs: Costs) -> Plan:
    program = meetings.program
    seconds = np.zeros(meetings.n_steps)
    seconds[: program.n_slots] = costs.slot_seconds(program)
    by_row = costs.edge_seconds(meetings.links)
    n_rules = len(by_row) - len(meetings.transfer)
    np.maximum.at(seconds, meetings.transfer, by_row[n_rules:])  # coalesced messages move side by side
    row = meetings.edges.row
    lag = np.where(row >= 0, by_row[row], 0.0)
    lines = np.arange(meetings.n_steps + 1)
    return Plan(seconds, lines, meetings.edge_offsets, meetings.edges.source, meetings.edges.from_start, lag)


class _Times(NamedTuple):
    """Of each slot: when it started, ended, and had been waiting since; of each message, when it moved."""

    start: Floats
    end: Floats
    since: Floats
    leaves: Floats
    arrives: Floats


def _times(meetings: Meetings, start: Floats, end: Floats) -> _Times:
    slot_start, slot_end = start[meetings.begin], end[meetings.finish]
    since = np.zeros(len(slot_start))
    line = meetings.line_of_slot
    order = np.argsort(line, kind="stable")
    same = line[order[1:]] == line[order[:-1]]
    since[order[1:][same]] = slot_end[order[:-1][same]]
    streamed = line >= meetings.program.n_ranks
    since[streamed] = _computed_before(meetings, slot_end)[streamed]
    return _Times(slot_start, slot_end, since, start[meetings.transfer], end[meetings.transfer])


def _computed_before(meetings: Meetings, slot_end: Floats) -> Floats:
    """(n_slots,) when each slot's rank was through with the computation before it."""
    program = meetings.program
    place = np.where(meetings.line_of_slot < program.n_ranks, np.arange(program.n_slots), -1)
    before = np.maximum.accumulate(place)
    return np.where(before >= program.rank_offsets[program.rank_of_slot], slot_end[before], 0.0)


def _lay_out(meetings: Meetings, costs: Costs, times: _Times) -> Events:
    """One row an action; a message's is from the moment its bytes move, or it is posted, to its end."""
    program = meetings.program
    slot = program.slot_of_action
    start, end, size = times.start[slot], times.end[slot], np.zeros(program.n_actions)
    send, receive = meetings.pairs
    carried = _bytes(meetings, costs)
    for rows in (send, receive):
        posted = times.start[slot[rows]]
        start[rows], end[rows] = np.maximum(times.leaves, posted), np.maximum(times.arrives, posted)
        size[rows] = carried
    peer = program.peer.copy()
    peer[send], peer[receive] = program.rank_of_action[receive], program.rank_of_action[send]
    return Events.of(
        rank=program.rank_of_action,
        stage=program.stage,
        micro_batch=program.micro_batch,
        segment=program.segment,
        kind=program.kind,
        slot=slot - program.rank_offsets[program.rank_of_action],
        stream=_streams(program.kind),
        start=start,
        end=end,
        wait=np.maximum(start - times.since[slot], 0.0),
        bytes=np.rint(size).astype(np.int64),
        peer=peer,
        origin=Origin.SIMULATED,
    )


def _bytes(meetings: Meetings, costs: Costs) -> Floats:
    """(n_messages,) bytes each message carries; 0 within a rank."""
    links = meetings.links
    carried = np.zeros(len(links.dependencies.source))
    carried[links.messages] = costs.bytes_of_messages(links)
    return carried[len(carried) - len(meetings.transfer) :]


def _streams(kind: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    sends, receives = np.isin(kind, (Kind.SEND_F, Kind.SEND_B)), np.isin(kind, (Kind.RECV_F, Kind.RECV_B))
    return np.select([sends, receives], [Stream.SEND, Stream.RECEIVE], Stream.COMPUTE).astype(np.int8)
