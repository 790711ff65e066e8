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
    check_rule,
    graph_of,
    is_message,
    meetings_of,
    refuse_hang,
)
from explorer.errors import ProgramError
from explorer.simulate.compiled import run_loaded
from explorer.simulate.engine import run_events
from explorer.simulate.flows import Flows, flows_of, meet
from explorer.simulate.layout import Floats
from explorer.simulate.memory import modelled_memory
from explorer.simulate.plan import Loads, Plan, Solver, Times, with_detours


def trace_of_meetings(program: Program, costs: Costs, rule: MessageRule, solve: Solver) -> Trace:
    """The trace of `program` where its messages meet by `rule`, its times found by `solve`.

    Raises:
        ProgramError: if the program is incomplete or has no messages.
        CircularWaitError: if its messages wait for each other in a circle.
    """
    meetings = _kept(program, rule)
    times = _times(meetings, _solved(meetings, costs, solve))
    memory = modelled_memory(meetings.links, costs, times.start, times.end)
    return Trace(_lay_out(meetings, costs, times), program, memory, costs, messages=rule)


def messages_meet(program: Program, rule: MessageRule) -> bool:
    """Whether there are messages to meet by a rule: a program of one rank neither has nor needs any.

    Raises:
        InputError: if there is no such rule.
    """
    check_rule(rule)
    return bool(is_message(program).any()) or len(graph_of(program).messages) > 0


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


def _solved(meetings: Meetings, costs: Costs, solve: Solver) -> Times:
    """The times of the steps, by `solve` where no messages hinder each other on shared links."""
    flows = flows_of(meetings.links, costs)
    if flows is None:
        return solve(_plan(meetings, costs), meetings.order)
    if solve is not run_events:
        times = solve(_plan(meetings, costs), meetings.order)
        if not meet(flows, _sent(meetings, times)[meetings.links.messages[flows.row]]):
            return times
    plan, loads = _with_loads(meetings, _plan(meetings, costs, flows), flows)
    return run_events(plan._replace(loads=loads)) if solve is run_events else run_loaded(plan, loads)


def _sent(meetings: Meetings, times: Times) -> Floats:
    """(n_dependencies,) when what passes along each dependency is sent; of a message, when its ends have met."""
    sent = times.end[meetings.finish[meetings.links.source_slot]]
    sent[len(sent) - len(meetings.transfer) :] = times.start[meetings.transfer]
    return sent


def _plan(meetings: Meetings, costs: Costs, flows: Flows | None = None) -> Plan:
    """The steps without what `flows` take on shared links."""
    program = meetings.program
    seconds = np.zeros(meetings.n_steps)
    seconds[: program.n_slots] = costs.slot_seconds(program)
    by_row = costs.edge_seconds(meetings.links)
    if flows is not None:
        shared = meetings.links.messages[flows.row]
        by_row = by_row.copy()
        by_row[shared] = meetings.dependencies.lag[shared]
    n_rules = len(by_row) - len(meetings.transfer)
    np.maximum.at(seconds, meetings.transfer, by_row[n_rules:])  # coalesced messages move side by side
    row = meetings.edges.row
    lag = np.where(row >= 0, by_row[row], 0.0)
    lines = np.arange(meetings.n_steps + 1)
    return Plan(seconds, lines, meetings.edge_offsets, meetings.edges.source, meetings.edges.from_start, lag)


def _with_loads(meetings: Meetings, plan: Plan, flows: Flows) -> tuple[Plan, Loads]:
    """The messages in their transfers; what travels without a send and a receive gets a step of its own."""
    row = meetings.links.messages[flows.row]
    transfer = row - (len(meetings.dependencies.source) - len(meetings.transfer))
    unsent = transfer < 0
    edge_of = np.full(len(meetings.dependencies.source), -1)
    edge_of[meetings.edges.row] = np.arange(len(meetings.edges.row))  # those of no row fall on the last, a message's
    step = meetings.transfer[np.maximum(transfer, 0)]
    step[unsent] = meetings.n_steps + np.arange(unsent.sum())
    return with_detours(plan, edge_of[row[unsent]]), Loads(flows, step)


class _SlotTimes(NamedTuple):
    """Of each slot: when it started, ended, and had been waiting since; of each message, when it moved."""

    start: Floats
    end: Floats
    since: Floats
    leaves: Floats
    arrives: Floats


def _times(meetings: Meetings, times: Times) -> _SlotTimes:
    start, end, moves = times
    slot_start, slot_end = start[meetings.begin], end[meetings.finish]
    since = np.zeros(len(slot_start))
    line = meetings.line_of_slot
    order = np.argsort(line, kind="stable")
    same = line[order[1:]] == line[order[:-1]]
    since[order[1:][same]] = slot_end[order[:-1][same]]
    streamed = line >= meetings.program.n_ranks
    since[streamed] = _computed_before(meetings, slot_end)[streamed]
    return _SlotTimes(slot_start, slot_end, since, moves[meetings.transfer], end[meetings.transfer])


def _computed_before(meetings: Meetings, slot_end: Floats) -> Floats:
    """(n_slots,) when each slot's rank was through with the computation before it."""
    program = meetings.program
    place = np.where(meetings.line_of_slot < program.n_ranks, np.arange(program.n_slots), -1)
    before = np.maximum.accumulate(place)
    return np.where(before >= program.rank_offsets[program.rank_of_slot], slot_end[before], 0.0)


def _lay_out(meetings: Meetings, costs: Costs, times: _SlotTimes) -> Events:
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
