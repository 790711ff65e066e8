"""A step gone through again with other durations: how long it would have taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from explorer.analysis.network import Network, Role, network_of
from explorer.analysis.sweeps import backward, forward
from explorer.analysis.timed import TimedStep

Floats = npt.NDArray[np.float64]

_ROUNDING = 1e-12  # of a step's makespan, below which a delay is none


@dataclass(frozen=True, eq=False)
class Resweep:
    """What a step's nodes and messages take; unchanged, going through it gives the step's own times.

    Attributes:
        step: whose network is gone through.
        seconds: (n_nodes,) float64 of each node.
        lag: (n_edges,) float64, seconds along each edge; −∞ leaves it out.
        delay: (n_nodes,) float64, seconds of each node besides what it waits for.
    """

    step: TimedStep
    seconds: Floats
    lag: Floats
    delay: Floats

    @classmethod
    def of(cls, step: TimedStep) -> Self:
        """The step as it was."""
        delay = np.nan_to_num(step.bindings.delay)
        delay[np.abs(delay) < _ROUNDING * step.makespan] = 0.0
        return cls(step, step.seconds, step.lag, delay)

    def with_seconds(self, seconds: Floats) -> Self:
        """The same where nodes take `seconds`, (n_nodes,)."""
        return replace(self, seconds=seconds)

    def with_moving(self, messages: npt.NDArray[np.int64], moving: Floats) -> Self:
        """The same where the given messages take `moving` seconds; both (n,)."""
        network = self.step.network
        lag, edge = self.lag.copy(), network.edge_of_message[messages]
        along = edge >= 0
        lag[edge[along]] = moving[along] + network.edges.lag[edge[along]]
        if along.all():
            return replace(self, lag=lag)
        taken = self.step.transfers.total.copy()
        taken[messages] = moving
        carries = network.carries
        return replace(self, lag=lag, seconds=np.where(carries >= 0, np.append(taken, 0.0)[carries], self.seconds))

    def without(self, role: Role) -> Self:
        """The same without what is waited for by this role."""
        return replace(self, lag=np.where(self.step.network.edges.role == role, -np.inf, self.lag))

    def prompt(self) -> Self:
        """The same where everything starts once all is there."""
        return replace(self, delay=np.zeros(len(self.delay)))

    @property
    def makespan(self) -> float:
        """Seconds that it takes."""
        return float(self.times()[1].max(initial=0.0))

    def times(self) -> tuple[Floats, Floats]:
        """(n_nodes,) seconds from the beginning to each start, and to each end."""
        return _times(self.step.network, self.lag, self.seconds, self.delay)

    def tails(self) -> Floats:
        """(n_nodes,) seconds that pass at least from each node's end to the end of all that depends on it."""
        edges = self.step.network.edges
        latest = np.zeros(len(self.seconds))
        backward(edges.offsets, edges.source, edges.early, self.lag, self.seconds, self.delay, latest)
        return -latest

    def unhindered(self) -> float:
        """Seconds that it would take if no rank stood at a message and none stood behind another."""
        step, mine = self.step, self.step.network
        alone = step.transfers.parts[:, 0] + step.transfers.parts[:, 1]
        plain = network_of(mine.program)
        if plain is None or plain is mine:
            return self.with_moving(np.arange(len(alone)), alone).makespan
        node = np.where(plain.slot >= 0, mine.node_of_slot[plain.slot], -1)
        seconds, delay = (np.append(of, 0.0)[node] for of in (self.seconds, self.delay))
        moving = np.append(alone[_same_messages(plain, mine)], 0.0)
        times = _times(plain, moving[plain.edges.message] + plain.edges.lag, seconds, delay)
        return float(times[1].max(initial=0.0))


def _times(network: Network, lag: Floats, seconds: Floats, delay: Floats) -> tuple[Floats, Floats]:
    n = network.n_nodes
    times = np.empty(2 * n)
    forward(network.edges.offsets, network.place, lag, seconds, delay, times)
    return times[n:], times[:n]


def _same_messages(network: Network, other: Network) -> npt.NDArray[np.int64]:
    """(n_messages,) which of the messages of `other` each of those of `network` is; both are of one program."""
    names = []
    for links in (network.links, other.links):
        ends = links.dependencies
        names.append(ends.source[links.messages] * np.int64(network.program.n_actions) + ends.target[links.messages])
    order = np.argsort(names[1], kind="stable")
    return np.asarray(order[np.searchsorted(names[1][order], names[0])])
