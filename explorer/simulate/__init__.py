"""Program + Costs → Trace."""

from __future__ import annotations

from explorer.core import Costs, MessageRule, Program, Trace, graph_of
from explorer.simulate.layout import MessageTimes, check_costs, lay_out, slot_times
from explorer.simulate.meetings import messages_meet, trace_of_meetings
from explorer.simulate.memory import modelled_memory
from explorer.simulate.plan import sweep_steps
from explorer.simulate.reference import simulate_events
from explorer.simulate.timing import Timing, time_slots

__all__ = [
    "MessageTimes",
    "Timing",
    "lay_out",
    "modelled_memory",
    "simulate",
    "simulate_events",
    "slot_times",
    "time_slots",
]


def simulate(program: Program, costs: Costs | None = None, *, messages: MessageRule | None = None) -> Trace:
    """The trace of `program` under `costs`: every slot as early as its rank and what it waits for allow.

    Args:
        program: any program that `check` approves.
        costs: seconds and bytes; `Costs()` if not given, which is F = 1, B = 2 and free messages.
        messages: None: a message is on its way as soon as it is sent, and whoever needs it waits. Else how the sends
            and receives of a program that has them meet: "rendezvous", "buffered", "ordered", "two_streams" or
            "coalesced", as `check_messages` explains them.

    Raises:
        ProgramError: if the program is incomplete or cannot finish.
        CostError: if a cost has the wrong shape.
        InputError: if there is no such rule of messages.

    Example:
        >>> import explorer as ex
        >>> ex.simulate(ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)).makespan
        33.0
    """
    costs = check_costs(costs)
    if messages is not None and messages_meet(program, messages):
        return trace_of_meetings(program, costs, messages, sweep_steps)
    graph = graph_of(program)
    start, end, moved = time_slots(graph, costs, costs.slot_seconds(program))
    events = lay_out(graph, costs, start, end, messages=moved)
    return Trace(events, program, modelled_memory(graph, costs, start, end), costs)
