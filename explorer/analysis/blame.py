"""Which action is at fault: found on the chain of what was waited for, up to where the rank's own history meets it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.durations import Durations
from explorer.analysis.gaps import Gaps
from explorer.analysis.timed import TimedStep
from explorer.core import kernel

Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_MOST = 300  # nodes of two chains that are followed for one gap; what lies farther back is rarely at fault
_AWAITED, _ROOT, _HEAVIEST, _HICCUP, _SLOWEST, _LIMITED, _DELAYED, _SENT, _QUEUED = range(9)


class Blame(NamedTuple):
    """For each gap, indices of the program's actions; −1 = none.

    Attributes:
        awaited: (n_gaps,) what the rank waits for.
        root: (n_gaps,) what ran when the gap began, on the chain to what is awaited.
        heaviest: (n_gaps,) of the chain, what takes longer than its like on other ranks by most.
        hiccup: (n_gaps,) of the chain, what took longer than its median by most.
        slowest: (n_gaps,) of the chain, what a slow rank lengthened by most.
        limited: (n_gaps,) of the chain, what a limit held back by most.
        delayed: (n_gaps,) of the chain, what started late by most although all was there.
        sent: (n_gaps,) what made the last message of the chain.
        queued: (n_gaps,) what made the message that stood behind others by most.
    """

    awaited: Indices
    root: Indices
    heaviest: Indices
    hiccup: Indices
    slowest: Indices
    limited: Indices
    delayed: Indices
    sent: Indices
    queued: Indices


def blame_for(step: TimedStep, gaps: Gaps, durations: Durations, others: Floats, worst: Flags) -> Blame:
    """The actions at fault for each gap.

    Args:
        step: that the gaps are in.
        gaps: to explain.
        durations: of the step.
        others: (n_ranks, n_signatures) seconds that work of each signature takes on other ranks.
        worst: (n_gaps,) bool, whether what is worst on a gap's chain is wanted; else only its near end is followed.
    """
    network, bindings = step.network, step.bindings
    found = np.full((len(gaps.rank), 9), -1, np.int64)
    classes = network.classes
    signature = np.where(classes.of_node >= 0, np.append(classes.signature, -1)[classes.of_node], -1).astype(np.int32)
    last = np.where(gaps.after < 0, step.last_node, -1)
    _walk(
        np.stack([gaps.rank, gaps.before, gaps.after, last, np.where(worst, _MOST, 0)], axis=1),
        gaps.start,
        network.edges.source,
        network.edges.message,
        bindings.free_edge,
        network.carries,
        step.end,
        signature,
        durations.of_node,
        np.stack([bindings.held, bindings.delay]),
        step.transfers.parts,
        others,
        found,
    )
    limit = np.where(gaps.after >= 0, bindings.edge[gaps.after] != bindings.free_edge[gaps.after], False)
    if limit.any():  # what is awaited is then what makes room
        found[limit, _AWAITED] = network.edges.source[bindings.edge[gaps.after[limit]]]
    return Blame(*_as_actions(step, found).T)


def _as_actions(step: TimedStep, found: Indices) -> Indices:
    network, links = step.network, step.network.links
    action = np.append(network.action, -1)[found]
    sender = np.append(links.dependencies.source[links.messages], -1)
    action[:, _SENT:] = sender[found[:, _SENT:]]
    return np.asarray(action, np.int64)


@kernel
def _walk(  # noqa: C901  one loop: parts of it would be called for every node
    gaps: Indices,
    begin: Floats,
    source: Ints,
    message: Ints,
    free_edge: Ints,
    carries: Ints,
    end: Floats,
    signature: Ints,
    of_node: Floats,
    waits: Floats,
    of_message: Floats,
    others: Floats,
    found: Indices,
) -> None:
    """Follow two chains back until they meet, the one with the later node first, and keep the worst of the first.

    `gaps` holds the rank, the node before, the node after, where else the first chain begins, and how many nodes to
    follow at most; `waits` the seconds that nodes were held by limits, and by the host.
    """
    for gap in range(len(gaps)):
        worst = np.zeros(9)
        rank, own, here, node, follow = gaps[gap]
        while True:
            follow -= 1
            if here >= 0:
                # from `here` along what it waited for last, whatever is no limit
                for which in range(2):
                    if waits[which, here] > worst[5 + which]:
                        worst[5 + which], found[gap, 5 + which] = waits[which, here], here
                e = free_edge[here]
                node, way = -1, -1
                if e >= 0:
                    node, way = source[e], message[e]
                    if carries[node] >= 0:
                        way = carries[node]
                if way >= 0 and found[gap, 7] < 0:
                    found[gap, 7] = way
                if way >= 0 and of_message[way, 2] > worst[8]:
                    worst[8], found[gap, 8] = of_message[way, 2], way
                here = -1
            if node == own or (follow < 0 and found[gap, 1] >= 0 and not end[node] > begin[gap]):
                break
            if node < own:
                own = source[free_edge[own]] if free_edge[own] >= 0 else -1
                continue
            if signature[node] >= 0:
                if found[gap, 0] < 0:
                    found[gap, 0] = node
                if found[gap, 1] < 0 or end[node] > begin[gap]:
                    found[gap, 1] = node
                heavier = of_node[node, 2] - others[rank, signature[node]]
                if heavier > worst[2]:
                    worst[2], found[gap, 2] = heavier, node
                for which in range(2):
                    if of_node[node, which] > worst[3 + which]:
                        worst[3 + which], found[gap, 3 + which] = of_node[node, which], node
            here = node
