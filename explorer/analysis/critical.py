"""The critical path, and how much later each event may be without lengthening the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.sweeps import backward
from explorer.analysis.timed import TimedStep, timed_steps
from explorer.analysis.transfers import rows_of_messages
from explorer.core import Kind, Stream, Trace
from explorer.core.trace import check_trace

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

PIECES = ("action", "transfer", "queue", "wait", "gap")
_ACTION, _TRANSFER, _QUEUE, _WAIT, _GAP = range(len(PIECES))
_LEAST = 1e-12  # of a step's makespan: pieces that only rounding makes


class _Piece(NamedTuple):
    """Seconds of the path: `what` is one of PIECES, `action` an index of the program, −1 = none."""

    what: int
    rank: int
    peer: int
    action: int
    start: float
    end: float


def critical_path(trace: Trace) -> pd.DataFrame:
    """What sets each step's length: actions, messages and gaps, each beginning where the one before ends.

    It is read backwards: from the action that ends last to what that waited for last, and so on to the step's first
    start. Nothing on it can be later without the step ending later; where several such paths exist, one is given.

    Returns:
        step, rank, start, end, seconds; what: "action", "transfer" (a message from `rank` to `peer`), "queue" (the
        message stood behind others), "wait" (a lag that the program adds) or "gap" (all was there, and nothing ran);
        kind, stage, micro_batch and segment of the action, or of the one that sent. In order of time; the rows of a
        step cover its makespan.

    Raises:
        InputError: if it is no Trace.
        ProgramError: if its program is incomplete or cannot finish.

    Example:
        >>> import explorer as ex
        >>> path = ex.critical_path(ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=1)))
        >>> " ".join(path.kind + path.stage.astype(str))
        'F0 F1 B1 B0'
    """
    import pandas as pd

    trace = check_trace(trace)
    pieces, steps = [], []
    for step in timed_steps(trace):
        found = _path(step)
        pieces.extend(found)
        steps.extend([step.number] * len(found))
    what, rank, peer, action, start, end = np.array(pieces, float).reshape(-1, 6).T
    index = action.astype(np.int64)
    columns: dict[str, Any] = {"step": np.array(steps, np.int64), "rank": rank.astype(np.int64)}
    columns |= {"start": start, "end": end, "seconds": end - start}
    columns["what"] = pd.Categorical.from_codes(what.astype(np.int8), categories=pd.Index(PIECES))
    columns |= _described(trace, index)
    columns["peer"] = peer.astype(np.int64)
    return pd.DataFrame(columns)


def _described(trace: Trace, index: Indices) -> dict[str, Any]:
    """Kind, stage, micro-batch and segment of actions; "" and −1 where there is none."""
    program, there = trace.program, index >= 0
    names = np.array([kind.name for kind in Kind], dtype=object)
    columns: dict[str, Any] = {"kind": np.where(there, names[program.kind[index]], "") if len(index) else index}
    for name in ("stage", "micro_batch", "segment"):
        columns[name] = np.where(there, getattr(program, name)[index], -1) if len(index) else index
    return columns


def _path(step: TimedStep) -> list[_Piece]:
    """The path of one step, in order of time."""
    edges, bindings = step.network.edges, step.bindings
    node, until = step.last_node, step.finish
    if node < 0:
        return [_Piece(_GAP, 0, -1, -1, step.begin, until)]
    pieces = []
    while True:
        started = min(float(step.start[node]), until)
        pieces.append(_node_piece(step, node, started, until))
        edge = int(bindings.edge[node])
        if edge < 0:
            pieces.append(_gap_piece(step, node, step.begin, started))
            break
        source = int(edges.source[edge])
        left = min(float((step.start if edges.early[edge] else step.end)[source]), started)
        arrived = min(left + float(step.lag[edge]), started)
        pieces.append(_gap_piece(step, node, arrived, started))
        pieces.extend(_way_pieces(step, edge, left, arrived))
        node, until = source, left
    least = _LEAST * step.makespan
    return _closed([piece for piece in reversed(pieces) if piece.end - piece.start > least], step)


def _closed(pieces: list[_Piece], step: TimedStep) -> list[_Piece]:
    """The pieces, each beginning exactly where the one before ends; none where no time passed."""
    if not pieces:
        return []
    ends = [piece.start for piece in pieces[1:]] + [step.finish]
    starts = [step.begin, *ends[:-1]]
    return [piece._replace(start=a, end=b) for piece, a, b in zip(pieces, starts, ends, strict=True)]


def _node_piece(step: TimedStep, node: int, start: float, end: float) -> _Piece:
    network = step.network
    way = int(network.carries[node])
    if way >= 0:
        return _message_piece(step, way, _TRANSFER, start, end)
    return _Piece(_ACTION, int(network.rank[node]), -1, int(network.action[node]), start, end)


def _gap_piece(step: TimedStep, node: int, start: float, end: float) -> _Piece:
    return _Piece(_GAP, int(step.network.rank[node]), -1, int(step.network.action[node]), start, end)


def _way_pieces(step: TimedStep, edge: int, left: float, arrived: float) -> list[_Piece]:
    """What passes along an edge, the last first."""
    edges = step.network.edges
    way = int(edges.message[edge])
    if way < 0:
        target = int(step.network.target[edge])
        return [_gap_piece(step, target, left, arrived)._replace(what=_WAIT)]
    moves = min(left + float(step.transfers.parts[way, 2]), arrived)
    return [
        _message_piece(step, way, _TRANSFER, moves, arrived),
        _message_piece(step, way, _QUEUE, left, moves),
    ]


def _message_piece(step: TimedStep, way: int, what: int, start: float, end: float) -> _Piece:
    links = step.network.links
    row = links.messages[way]
    sender, receiver = int(links.dependencies.source[row]), int(links.dependencies.target[row])
    rank = step.network.program.rank_of_action
    return _Piece(what, int(rank[sender]), int(rank[receiver]), sender, start, end)


def slack(trace: Trace) -> Floats:
    """Seconds by which each event may be later, or take longer, without its step taking longer.

    All that depends on it is moved as far as it can be; what is on a critical path has none. What a rank waits
    besides, for its host, is taken to stay as it was.

    Returns:
        (n_events,) float64, by the rows of `trace.events`: of an action its own, of a message how much later it may
        arrive. NaN for what a step's length does not depend on, as the optimizer's updates.

    Raises:
        InputError: if it is no Trace.
        ProgramError: if its program is incomplete or cannot finish.

    Example:
        >>> import explorer as ex
        >>> trace = ex.simulate(ex.schedule("gpipe", n_ranks=2, n_micro_batches=2), ex.Costs(forward=[1, 2]))
        >>> ex.slack(trace)[:2]  # the forwards of stage 0: the second is waited for a second later than it ends
        array([0., 1.])
    """
    trace = check_trace(trace)
    found = np.full(len(trace.events), np.nan)
    for step in timed_steps(trace):
        here = np.flatnonzero(trace.events.step == step.number)
        latest = _latest(step)
        known = step.node >= 0
        found[here[step.rows[known]]] = np.maximum((latest - step.end)[step.node[known]], 0.0)
        of_messages = np.maximum(_of_messages(step, latest), 0.0)
        for stream in (Stream.SEND, Stream.RECEIVE):
            row, message = rows_of_messages(step.network, step.events, stream=stream)
            found[here[row]] = of_messages[message]
    return found


def _latest(step: TimedStep) -> Floats:
    """(n_nodes,) the latest end of each node that leaves the step as long as it is."""
    edges, bindings = step.network.edges, step.bindings
    latest = np.full(step.network.n_nodes, step.finish)
    there = np.isfinite(step.start)
    delay = np.where(there, np.nan_to_num(bindings.delay), 0.0)
    backward(edges.offsets, edges.source, edges.early, step.lag, step.seconds, delay, latest)
    return latest


def _of_messages(step: TimedStep, latest: Floats) -> Floats:
    """(n_messages,) how much later each may arrive; of nodes that carry messages, how much later they may end."""
    network, edges = step.network, step.network.edges
    found = np.full(len(step.transfers.total), np.nan)
    moved = np.flatnonzero(network.carries >= 0)
    found[network.carries[moved]] = (latest - step.end)[moved]
    along = np.flatnonzero(edges.message >= 0)
    target, source = network.target[along], edges.source[along]
    due = latest[target] - step.seconds[target] - np.nan_to_num(step.bindings.delay[target])
    found[edges.message[along]] = due - (step.end[source] + step.lag[along])
    return found
