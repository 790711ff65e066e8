"""What the seconds of each gap consist of: the chain of what was waited for, less the rank's own history."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.analysis.durations import Durations
from explorer.analysis.gaps import Gaps
from explorer.analysis.network import Role
from explorer.analysis.settling import (
    BANDWIDTH,
    HICCUP,
    HOST,
    IMBALANCE,
    LATENCY,
    MEMORY,
    N_PARTS,
    QUEUE,
    STRAGGLER,
    STRUCTURE,
)
from explorer.analysis.sweeps import COLUMNS, accumulate
from explorer.analysis.timed import TimedStep

Floats = npt.NDArray[np.float64]

_FROM = {
    LATENCY: COLUMNS.latency,
    BANDWIDTH: COLUMNS.bandwidth,
    QUEUE: COLUMNS.queue,
    MEMORY: COLUMNS.memory,
    HOST: COLUMNS.host,
    HICCUP: COLUMNS.hiccup,
    STRAGGLER: COLUMNS.straggler,
}
_COUNTS = len(COLUMNS)


def parts_of(step: TimedStep, gaps: Gaps, durations: Durations, others: Floats) -> Floats:
    """(n_gaps, 9) seconds of each gap by what they consist of, signed; each row sums to the gap's seconds.

    The seconds until any node's start are those of a chain: of what was waited for last, of what that waited for, and
    so on to the step's beginning. A gap lies between the chain of the node that ends it and that of the node before
    it, so it consists of what the one chain has more than the other. Work of each kind that the first has more of is
    structure, at the mean of that work on other ranks; what remains of its seconds is imbalance.

    Args:
        step: that the gaps are in.
        gaps: to explain.
        durations: of the step.
        others: (n_ranks, n_signatures) seconds that work of each signature takes on other ranks.
    """
    accounts = _accounts(step, durations)
    ends = _at_end(step, accounts, durations, gaps.before)
    starts = np.where(gaps.after[:, None] >= 0, accounts[gaps.after], 0.0)
    closing = gaps.after < 0
    last = np.where(closing, step.last_node, -1)
    starts[closing] = _at_end(step, accounts, durations, last[closing])
    more = starts - ends
    structure = (more[:, _COUNTS:] * others[gaps.rank]).sum(axis=1)
    parts = np.zeros((len(gaps.rank), N_PARTS))
    parts[:, STRUCTURE] = structure
    parts[:, IMBALANCE] = more[:, COLUMNS.nominal] - structure
    for part, column in _FROM.items():
        parts[:, part] = more[:, column]
    parts[~gaps.known | ~np.isfinite(parts).all(axis=1)] = 0.0
    parts[:, HOST] += gaps.seconds - parts.sum(axis=1)  # what no chain explains
    return parts


def _accounts(step: TimedStep, durations: Durations) -> Floats:
    """(n_nodes, n_columns) what the seconds until each start consist of."""
    network, bindings, edges = step.network, step.bindings, step.network.edges
    classes = network.classes
    found = np.zeros((network.n_nodes, _COUNTS + classes.n_signatures))
    chain = edges.source, edges.role == Role.ORDER, edges.message, bindings.free_edge, bindings.held, bindings.delay
    nodes = network.carries, network.ends_message, _signatures(step), step.transfers.parts, durations.of_node
    accumulate(*chain, *nodes, found)
    return found


def _signatures(step: TimedStep) -> npt.NDArray[np.int32]:
    classes = step.network.classes
    return np.append(classes.signature, -1)[classes.of_node].astype(np.int32)


def _at_end(step: TimedStep, accounts: Floats, durations: Durations, node: npt.NDArray[np.int64]) -> Floats:
    """(n, n_columns) what the seconds until the end of each node consist of; 0 where there is none."""
    found = accounts[node].copy()
    found[:, COLUMNS.hiccup : _COUNTS] += durations.of_node[node]
    signature = _signatures(step)[node]
    found[np.arange(len(node)), _COUNTS + signature] += signature >= 0
    found[node < 0] = 0.0
    return found
