"""What a step would gain if something took less: every stage, link, kind and rank in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.network import Network
from explorer.analysis.resweep import Resweep
from explorer.analysis.timed import typical_step
from explorer.core import Kind, Trace
from explorer.core.trace import check_trace
from explorer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]


class _Lever(NamedTuple):
    """Something that could take less: what share of each node's seconds, and which messages, are its."""

    of: str
    name: str
    share: Floats | None
    messages: npt.NDArray[np.int64] | None


def sensitivity(trace: Trace, *, less: float = 0.1) -> pd.DataFrame:
    """What the step gains if a stage, a link, a kind of action or a rank takes less: the numbers of a tornado chart.

    Each is shortened in turn, and the step gone through again with everything else as it was, messages that share links
    with others included. Of a slot that holds
    several actions each has an equal share. Of several steps the one with the median makespan is taken.

    Args:
        trace: any, simulated, executed, recorded or imported.
        less: how much less it takes, as a share: 0.1 = 10 %.

    Returns:
        of: "stage", "link", "kind" or "rank"; name; gain: seconds by which the step is shorter; share: that as a
        share of the makespan; makespan: seconds that are left. The largest gain first.

    Raises:
        InputError: if it is no Trace, nothing ran in it, or `less` is no share.
        ProgramError: if its program is incomplete or cannot finish.

    Example:
        >>> import explorer as ex
        >>> trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=4), ex.Costs(forward=[1, 2]))
        >>> print(ex.sensitivity(trace).head(3)[["name", "gain"]].to_string(index=False))
           name  gain
        stage 1   2.4
         rank 1   2.4
              B   1.8
    """
    import pandas as pd

    trace = check_trace(trace)
    if not isinstance(less, (int, float)) or isinstance(less, bool) or not 0 < less <= 1:
        raise InputError(f"less is a share above 0 and at most 1; got {str(less)[:40]}; try 0.1", argument="less")
    step = typical_step(trace)
    base, moving = Resweep.of(step), step.transfers.total
    before = base.makespan
    rows: list[dict[str, Any]] = []
    for lever in _levers(step.network):
        changed = base
        if lever.share is not None:
            changed = base.with_seconds(base.seconds * (1.0 - less * lever.share))
        if lever.messages is not None:
            changed = base.with_moving(lever.messages, moving[lever.messages] * (1.0 - less))
        after = changed.makespan
        rows.append({"of": lever.of, "name": lever.name, "gain": before - after, "makespan": after})
    frame = pd.DataFrame(rows, columns=["of", "name", "gain", "makespan"])
    frame.insert(3, "share", frame["gain"] / before if before else 0.0)
    return frame.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def _levers(network: Network) -> Iterator[_Lever]:
    program = network.program
    for stage in range(program.n_stages):
        yield _Lever("stage", f"stage {stage}", _share(network, program.stage == stage), None)
    yield from _link_levers(network)
    for kind in np.flatnonzero(np.bincount(program.kind[network.action[network.action >= 0]])).tolist():
        yield _Lever("kind", Kind(kind).name, _share(network, program.kind == kind), None)
    for rank in range(program.n_ranks):
        yield _Lever("rank", f"rank {rank}", (network.rank == rank) & (network.slot >= 0), None)


def _share(network: Network, actions: npt.NDArray[np.bool_]) -> Floats:
    """(n_nodes,) the share of each node's actions that are among `actions`."""
    offsets = network.program.slot_offsets
    of_slot = np.add.reduceat(actions.astype(float), offsets[:-1]) / np.diff(offsets)
    return np.where(network.slot >= 0, of_slot[network.slot], 0.0)


def _link_levers(network: Network) -> Iterator[_Lever]:
    links, rank = network.links, network.program.rank_of_action
    source = rank[links.dependencies.source[links.messages]]
    target = rank[links.dependencies.target[links.messages]]
    link = source.astype(np.int64) * network.program.n_ranks + target
    order = np.argsort(link, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(link[order])) + 1) if len(order) else ():
        yield _Lever("link", f"rank {source[rows[0]]} → {target[rows[0]]}", None, rows)
