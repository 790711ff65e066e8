"""A step of a trace on the network of its program: when each node ran, and what its messages took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from explorer.analysis.network import Network, network_of
from explorer.analysis.sweeps import bind, forward
from explorer.analysis.transfers import Transfers, transfers_of
from explorer.core import MESSAGE_RULES, Events, Kind, Program, Trace, is_message
from explorer.core.metrics import compute_rows
from explorer.errors import InputError

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-9  # of a step's seconds, below which times are the same


@dataclass(frozen=True, eq=False)
class Bindings:
    """What each node waited for last; see `sweeps.bind`.

    Attributes:
        edge, free_edge: (n_nodes,) int32, the last edge of all, and of those that are no limit; −1 = none.
        held, delay: (n_nodes,) float64, seconds.
    """

    edge: Ints
    free_edge: Ints
    held: Floats
    delay: Floats


@dataclass(frozen=True, eq=False)
class TimedStep:
    """One step of a trace.

    Attributes:
        number: of the step.
        network: whose nodes ran.
        events: of the step.
        rows: (n_rows,) rows of `events` that keep a rank's device busy, by rank and start.
        node: (n_rows,) int32, the node each belongs to; −1 = none of the program's.
        start: (n_nodes,) float64 seconds; NaN where a node did not run.
        end: (n_nodes,) float64 seconds; NaN where a node did not run.
        transfers: what messages took.
        begin: seconds at which the first rank started.
        finish: seconds at which the last rank ended.
    """

    number: int
    network: Network
    events: Events
    rows: npt.NDArray[np.int64]
    node: Ints
    start: Floats
    end: Floats
    transfers: Transfers
    begin: float
    finish: float

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end."""
        return self.finish - self.begin

    @cached_property
    def seconds(self) -> Floats:
        """(n_nodes,) how long each took; 0 where it did not run."""
        return np.nan_to_num(self.end - self.start)

    @cached_property
    def lag(self) -> Floats:
        """(n_edges,) seconds that pass along each edge."""
        edges = self.network.edges
        if not len(self.transfers.total):
            return edges.lag
        return np.where(edges.message >= 0, self.transfers.total[edges.message], 0.0) + edges.lag

    @cached_property
    def bindings(self) -> Bindings:
        """What each node waited for last."""
        edges, n = self.network.edges, self.network.n_nodes
        found = Bindings(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.empty(n))
        limit = edges.role == 3
        links = edges.offsets, edges.source, edges.early, limit, self.lag
        bind(*links, self.begin, self.start, self.end, found.edge, found.free_edge, found.held, found.delay)
        return found

    @cached_property
    def last_node(self) -> int:
        """The node that ends the step; −1 if none of the program's does."""
        if not len(self.rows):
            return -1
        return int(self.node[int(np.argmax(self.events.end[self.rows]))])


def timed_steps(trace: Trace) -> Iterator[TimedStep]:
    """Each step of `trace` that holds computation, in order.

    Raises:
        ProgramError: if the trace's program is incomplete or cannot finish.
        InputError: if the program has other ranks than the trace.
    """
    for number in trace.steps:
        one = trace.events if len(trace.steps) == 1 else trace.events.take(trace.events.step == number)
        rows = compute_rows(one)
        if len(rows):
            yield _timed(number, trace, one, rows)


def typical_step(trace: Trace) -> TimedStep:
    """The step whose makespan is the median of those that count: all but the first, unless there is but one.

    Of two in the middle it is the shorter.

    Raises:
        InputError: if no step holds computation.
    """
    spans = []
    for number in trace.steps[1:] or trace.steps:
        one = trace.events.take(trace.events.step == number)
        rows = compute_rows(one)
        if len(rows):
            spans.append((float(one.end[rows].max() - one.start[rows].min()), number, one, rows))
    if not spans:
        raise InputError(
            "this needs a trace in which something ran; got one without computation; simulate or execute its program",
            argument="trace",
        )
    _, number, one, rows = sorted(spans, key=lambda span: span[:2])[(len(spans) - 1) // 2]
    return _timed(number, trace, one, rows)


def _timed(number: int, trace: Trace, events: Events, rows: npt.NDArray[np.int64]) -> TimedStep:
    begin, finish = float(events.start[rows].min()), float(events.end[rows].max())
    slot = _slots(trace.program, events.take(rows))
    network = network_of(trace.program)
    if network is None:  # never: only a rule of messages can make a complete program hang here
        raise InputError("this needs a trace whose program can finish; got one that cannot", argument="trace")
    node = np.where(slot >= 0, network.node_of_slot[slot], -1)
    start, end = _times(events, rows, node, network.n_nodes)
    step = TimedStep(number, network, events, rows, node, start, end, _none(), begin, finish)
    if not is_message(trace.program).any():
        return replace(step, transfers=transfers_of(network, events, start, end, trace.costs))
    return _with_messages(step, trace, slot)


def _none() -> Transfers:
    return Transfers(np.zeros(0), np.zeros((0, 3)))


def _slots(program: Program, events: Events) -> npt.NDArray[np.int64]:
    """(n_rows,) the slot of each row over all ranks; −1 where the program has no such action."""
    first = program.rank_offsets[events.rank]
    slot = np.where(events.slot >= 0, first + events.slot, -1)
    slot = np.where(slot < program.rank_offsets[events.rank + 1], slot, -1)
    if (slot >= 0).all():
        return slot
    keys, order, wanted = _keys(program, events)
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[place]
    by_action = np.where(keys[found] == wanted, program.slot_of_action[found], -1)
    return np.where(slot >= 0, slot, by_action)


def _keys(
    program: Program, events: Events
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The program's actions as numbers, what sorts them, and the events as such numbers."""
    factors = len(Kind), program.n_stages + 1, program.n_micro_batches + 1, program.n_segments + 1
    columns = []
    for table, rank in ((program, program.rank_of_action), (events, events.rank)):
        key = rank.astype(np.int64)
        for name, factor in zip(("kind", "stage", "micro_batch", "segment"), factors, strict=True):
            key = key * factor + getattr(table, name) + (name != "kind")
        columns.append(key)
    return columns[0], np.argsort(columns[0], kind="stable"), columns[1]


def _times(events: Events, rows: npt.NDArray[np.int64], node: Ints, n_nodes: int) -> tuple[Floats, Floats]:
    """(n_nodes,) when each node started and ended; NaN where it did not run."""
    known = node >= 0
    of, start, end = node[known], events.start[rows[known]], events.end[rows[known]]
    started, ended = np.full(n_nodes, np.nan), np.full(n_nodes, np.nan)
    started[of], ended[of] = start, end
    if len(of) > np.count_nonzero(np.isfinite(started)):  # several rows of one slot
        np.fmin.at(started, of, start)
        np.fmax.at(ended, of, end)
    return started, ended


def _with_messages(step: TimedStep, trace: Trace, slot: npt.NDArray[np.int64]) -> TimedStep:
    """The step on the network of the rule by which its messages met; of a trace that does not say, one that fits.

    That is the first that explains every start; a trace that none explains is taken as one whose messages hold up no
    rank, and what that leaves open is told as the host's.
    """
    closest, error = step, np.inf
    for rule in dict.fromkeys((trace.messages, None, *MESSAGE_RULES)):
        network = network_of(trace.program, rule)
        if network is None:
            continue
        node = np.where(slot >= 0, network.node_of_slot[slot], -1).astype(np.int32)
        start, end = _times(step.events, step.rows, node, network.n_nodes)
        transfers = transfers_of(network, step.events, start, end, trace.costs, rule)
        tried = _swept(replace(step, network=network, node=node, start=start, end=end, transfers=transfers))
        off = np.abs(tried.start[node[node >= 0]] - start[node[node >= 0]]).max(initial=0.0)
        if rule is None or off <= _ROUNDING * step.makespan:
            closest, error = tried, off
        if error <= _ROUNDING * step.makespan:
            return tried
    network = closest.network
    start, end = _times(step.events, step.rows, closest.node, network.n_nodes)
    return replace(
        closest, start=np.where(np.isnan(start), closest.start, start), end=np.where(np.isnan(end), closest.end, end)
    )


def _swept(step: TimedStep) -> TimedStep:
    """The step with the times that its durations give: those of nodes that no row tells of, too."""
    network, edges = step.network, step.network.edges
    seconds = step.seconds.copy()
    moving = network.carries >= 0
    seconds[moving] = step.transfers.total[network.carries[moving]]
    n = network.n_nodes
    times = np.empty(2 * n)
    forward(edges.offsets, network.place, step.lag, seconds, np.zeros(n), times)
    return replace(step, start=times[n:] + step.begin, end=times[:n] + step.begin)
