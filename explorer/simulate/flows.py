"""Messages on shared links: which there are, and whether they ever meet on one."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Graph, LinkSharing, ways

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class Flows(NamedTuple):
    """Messages whose bytes pass shared links; all columns (n_flows,).

    Attributes:
        row: int64, the message, as a row of the graph's `messages`.
        seconds: float64, above 0, in which its bytes move with nothing in their way.
        latency: float64, seconds that pass behind them.
        links: (n_flows, n_links_on_the_way) int64, the links it passes, at least one of them not −1.
        sharing: how messages on a link at once share it, as `Costs.sharing`.
    """

    row: Indices
    seconds: Floats
    latency: Floats
    links: Indices
    sharing: LinkSharing

    def take(self, rows: Indices) -> Self:
        """The given rows."""
        columns = (self.row[rows], self.seconds[rows], self.latency[rows], self.links[rows])
        return type(self)(*columns, self.sharing)


def flows_of(graph: Graph, costs: Costs) -> Flows | None:
    """The messages of `graph` that take time on a shared link; None if there are none.

    Raises:
        CostError: if the links are of another number of ranks.
    """
    if costs.links is None:
        return None
    program, edges, rows = graph.program, graph.dependencies, graph.messages
    ends = program.rank_of_action[edges.source[rows]], program.rank_of_action[edges.target[rows]]
    links = ways(costs.links, *ends, program.n_ranks)
    seconds = costs.moving_seconds(graph)
    shared = np.flatnonzero((seconds > 0) & (links >= 0).any(axis=1))
    if not len(shared):
        return None
    return Flows(shared, seconds[shared], costs.message_latency(graph)[shared], links[shared], costs.sharing)


def meet(flows: Flows, sent: Floats) -> bool:
    """Whether two messages are ever on a link at once, were each alone on its way.

    If not, none ever hinders another, and times found without regard to links are those with it.

    Args:
        flows: the messages.
        sent: (n_flows,) seconds at which each is sent.
    """
    flow, place = np.nonzero(flows.links >= 0)
    link = flows.links[flow, place]
    order = np.lexsort((sent[flow], link))
    flow, link = flow[order], link[order]
    before, after = flow[:-1], flow[1:]
    late = (link[:-1] == link[1:]) & (before != after)  # a way may name a link twice
    return bool((late & (sent[after] < sent[before] + flows.seconds[before])).any())
