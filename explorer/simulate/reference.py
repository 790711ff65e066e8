"""The simulation event by event."""

from __future__ import annotations

from explorer.core import Costs, MessageRule, Program, Trace, graph_of
from explorer.simulate.engine import run_events
from explorer.simulate.layout import check_costs, lay_out
from explorer.simulate.meetings import messages_meet, trace_of_meetings
from explorer.simulate.memory import modelled_memory
from explorer.simulate.timing import time_events


def simulate_events(program: Program, costs: Costs | None = None, *, messages: MessageRule | None = None) -> Trace:
    """The trace of `program` under `costs`, event by event: slower than `simulate`, and its reference.

    Args:
        program: any program that `check` approves; with `messages`, one that has messages.
        costs: seconds and bytes; `Costs()` if not given.
        messages: as in `simulate`.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.
        CostError: if a cost has the wrong shape.
        InputError: if there is no such rule of messages.
    """
    costs = check_costs(costs)
    if messages is not None and messages_meet(program, messages):
        return trace_of_meetings(program, costs, messages, run_events)
    graph = graph_of(program)
    start, end, moved = time_events(graph, costs, costs.slot_seconds(program))
    events = lay_out(graph, costs, start, end, messages=moved)
    return Trace(events, program, modelled_memory(graph, costs, start, end), costs)
