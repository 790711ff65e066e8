"""Links that several pairs of ranks share, like the network card of a node.

A message leaves as soon as it is sent. Its bytes pass all links of its way at once, in bytes ÷ bandwidth seconds if no
other message is on one of them; then comes the latency, in which it holds no link. Of the messages on a link at once,
those of one pair of ranks included,

    fair    each gets an equal part: of k messages over one link, each moves at 1/k of its bandwidth. Over several
            links the parts are max-min fair: the link with the smallest part for each of its messages sets theirs,
            what these leave free on other links is divided among the others, and so on.
    queue   one moves and the others wait, first sent, first moved; a message moves once it is the first on all its
            links. Of those sent at the same time, that of the lower rank comes first.

Source: fair: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2; SimGrid shares links so (Casanova et
al. 2014, Journal of Parallel and Distributed Computing 74(10)). queue: links of ASTRA-sim's congestion-aware analytical
network keep what is sent while they are busy in such a list.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from explorer.errors import CostError, InputError

Indices = npt.NDArray[np.int64]
LinkSharing = Literal["fair", "queue"]


def node_links(n_ranks: int, *, ranks_per_node: int) -> Indices:
    """The links of a cluster whose nodes have one network card each, for `Costs.links`.

    A message between nodes passes the way out of the sender's node and the way in to the receiver's; within a node
    nothing is shared. Ranks fill the nodes in order: with four a node, ranks 0–3 are node 0, ranks 4–7 node 1.

    Args:
        n_ranks: pipeline ranks; the last node may have fewer than the others.
        ranks_per_node: ranks that share a card.

    Returns:
        (n_ranks, n_ranks, 2) int64: from row to column, link n is the way out of node n, and n_nodes + n the way in;
        −1 within a node.

    Raises:
        InputError: if a count is no whole number of at least 1.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
        >>> alone = ex.Costs(bandwidth=50e9, message_bytes=100e9)  # 2 s a message
        >>> shared = ex.Costs(bandwidth=50e9, message_bytes=100e9, links=ex.node_links(4, ranks_per_node=2))
        >>> ex.simulate(program, alone).makespan, ex.simulate(program, shared).makespan
        (65.0, 66.5)
    """
    for name, value in (("n_ranks", n_ranks), ("ranks_per_node", ranks_per_node)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise InputError(
                f"{name} is a whole number of at least 1; got {str(value)[:40]}; try 8", argument=name, legal=(8,)
            )
    node = np.arange(n_ranks, dtype=np.int64) // ranks_per_node
    out, into = np.broadcast_arrays(node[:, None], node[None, :] + node[-1] + 1)
    within = node[:, None] == node[None, :]
    return np.where(within[..., None], -1, np.stack([out, into], axis=-1))


def check_links(links: Any, sharing: str) -> None:
    """Refuse what names no links, or no way to share them.

    Raises:
        CostError: saying what would.
    """
    if sharing not in get_args(LinkSharing):
        raise CostError(f'sharing is "fair" or "queue"; got {str(sharing)[:40]!r}; try "fair"', argument="sharing")
    if links is None:
        return
    try:
        array = np.asarray(links)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iu" or array.ndim not in (2, 3) or array.shape[0] != array.shape[1]:
        raise CostError(
            "links are whole numbers, (n_ranks, n_ranks) or (n_ranks, n_ranks, n_links_on_the_way); got "
            f"{array.dtype} of shape {array.shape}; try explorer.node_links(8, ranks_per_node=4)",
            argument="links",
        )
    if array.size and array.min() < -1:
        raise CostError(f"links are numbered from 0, and -1 is none; got {array.min()}; try -1", argument="links")


def ways(links: npt.ArrayLike, source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], n_ranks: int) -> Indices:
    """(n_messages, n_links_on_the_way) the links that messages between these ranks pass; −1 = none.

    Raises:
        CostError: if `links` are of another number of ranks.
    """
    array = np.asarray(links, np.int64)
    if array.shape[0] != n_ranks:
        raise CostError(
            f"links are from rank to rank; got {array.shape[0]} ranks for {n_ranks}; "
            f"try explorer.node_links({n_ranks}, ranks_per_node=4)",
            argument="links",
        )
    return array.reshape(n_ranks, n_ranks, -1)[source, target]
