"""When slots run and messages move, by the fast sweep where that is exact and event by event where links are shared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Graph
from explorer.simulate.compiled import run_loaded
from explorer.simulate.engine import run_events
from explorer.simulate.flows import Flows, flows_of, meet
from explorer.simulate.layout import Floats, MessageTimes, slot_times
from explorer.simulate.plan import Loads, Plan, Times, with_detours


class Timing(NamedTuple):
    """When everything happens.

    Attributes:
        start: (n_slots,) seconds.
        end: (n_slots,) seconds.
        messages: of each of the graph's messages; None where each has its links to itself.
    """

    start: Floats
    end: Floats
    messages: MessageTimes | None = None


def time_slots(graph: Graph, costs: Costs, slot_seconds: Floats, *, ran: npt.NDArray[np.bool_] | None = None) -> Timing:
    """When slots that take `slot_seconds` run: as early as their rank, what they wait for and the links allow.

    Args:
        graph: of the program.
        costs: whose links the messages take.
        slot_seconds: (n_slots,) seconds.
        ran: (n_slots,) which slots have run, of a step that goes on; the others send nothing.

    Raises:
        CostError: if latency, bandwidth or links have the wrong shape.
    """
    edge_seconds = costs.edge_seconds(graph)
    swept = Timing(*slot_times(graph, slot_seconds, edge_seconds))
    flows = flows_of(graph, costs)
    if flows is not None and ran is not None:
        flows = flows.take(np.flatnonzero(ran[_senders(graph, flows)]))
    if flows is None or not meet(flows, swept.end[_senders(graph, flows)]):
        return swept
    plan = _with_detours(graph, _plan(graph, slot_seconds, edge_seconds), flows)
    return _timing(graph, costs, flows, run_loaded(plan, _loads(graph, flows)))


def time_events(graph: Graph, costs: Costs, slot_seconds: Floats) -> Timing:
    """As `time_slots`, event by event whatever the links are."""
    plan = _plan(graph, slot_seconds, costs.edge_seconds(graph))
    flows = flows_of(graph, costs)
    if flows is None:
        times = run_events(plan)
        return Timing(times.start, times.end)
    plan = _with_detours(graph, plan, flows)._replace(loads=_loads(graph, flows))
    return _timing(graph, costs, flows, run_events(plan))


def _plan(graph: Graph, slot_seconds: Floats, edge_seconds: Floats) -> Plan:
    """The lines are the ranks, the steps their slots."""
    offsets, early = graph.program.rank_offsets, graph.dependencies.from_start
    return Plan(slot_seconds, offsets, graph.edge_offsets, graph.source_slot, early, edge_seconds)


def _with_detours(graph: Graph, plan: Plan, flows: Flows) -> Plan:
    """Each message on a shared link as a step between those it joins."""
    edges = graph.messages[flows.row]
    lag = plan.lag.copy()
    lag[edges] = graph.dependencies.lag[edges]
    return with_detours(plan._replace(lag=lag), edges)


def _loads(graph: Graph, flows: Flows) -> Loads:
    return Loads(flows, graph.program.n_slots + np.arange(len(flows.row)))


def _timing(graph: Graph, costs: Costs, flows: Flows, times: Times) -> Timing:
    """Of the times of a plan with detours, those of slots, and of messages."""
    n_slots = graph.program.n_slots
    sent = times.end[graph.source_slot[graph.messages]]
    begun, arrives = sent.copy(), sent + costs.message_seconds(graph)
    begun[flows.row], arrives[flows.row] = times.moves[n_slots:], times.end[n_slots:]
    return Timing(times.start[:n_slots], times.end[:n_slots], MessageTimes(begun, arrives, begun - sent))


def _senders(graph: Graph, flows: Flows) -> npt.NDArray[np.int64]:
    """(n_flows,) the slot that sends each message."""
    return np.asarray(graph.source_slot[graph.messages[flows.row]])
