"""Changes that let a hanging program finish: tried, checked again, and only then proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from explorer.core import Kind, Link, Meetings, MessageRule, Program, find_circle, is_message, meetings_of
from explorer.lowering.add import add_messages
from explorer.lowering.columns import rebuilt, reordered
from explorer.lowering.groups import group_messages, one_group_per_peer
from explorer.lowering.report import Cure

_WORK = 150_000  # slots looked at by one search for moves or buffers, under a second


def cures_of(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    """All cures that are found, best first, one at a time; each was checked."""
    for attempt in _ATTEMPTS[meetings.rule]:
        yield from attempt(meetings, circle)


def _post_first(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    """Move what is waited for ahead of what it stands behind, circle by circle."""
    program, moves = meetings.program, []
    now = meetings
    for tried in range(_tries(program) + 1):
        move = next(_moves(now, circle), None)
        if move is None:
            break
        slot, head = move
        moves.append(
            f"rank {program.rank_of_slot[slot]} posts {now.program.slot(slot)} before {now.program.slot(head)}"
        )
        if tried == _tries(program):
            break
        now = meetings_of(_moved(now.program, slot, head), meetings.rule)
        circle = find_circle(now)
        if not circle:
            more = f", and {len(moves) - 1} more such moves" if len(moves) > 1 else ""
            yield Cure("post_first", moves[0] + more, now.program, meetings.rule)
            return
    yield from _front_load(meetings, moves)


def _front_load(meetings: Meetings, moves: list[str]) -> Iterator[Cure]:
    """Place all messages anew, so that both ends of each stand in one order that all ranks share."""
    program = meetings.program
    if not (program.kind == Kind.F).any():
        return
    placed = add_messages(_without_messages(program), receives="front_loaded")
    if placed.n_actions == program.n_actions and not meetings_of(placed, meetings.rule).hangs:
        example = f": {moves[0]}, and so on" if moves else ""
        text = f"place each receive as its sender's turn comes (receives='front_loaded'){example}"
        yield Cure("post_first", text, placed, meetings.rule)


def _group(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    yield from _if_cured(
        "group", "post neighbouring messages together", group_messages(meetings.program), meetings.rule
    )


def _group_per_peer(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    program = one_group_per_peer(meetings.program)
    yield from _if_cured("group_per_peer", "post one group for each peer", program, meetings.rule)


def _second_stream(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    text = "give each rank a second stream, one for sends and one for receives"
    yield from _if_cured("second_stream", text, meetings.program, "two_streams")


def _buffer(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[Cure]:
    """Give a buffer to a send of each circle, or to all where these would be too many."""
    program, pairs = meetings.program, meetings.pairs
    slot = program.slot_of_action
    ends: dict[tuple[int, ...], list[int]] = {}
    for row, (one, other) in enumerate(zip(slot[pairs.send].tolist(), slot[pairs.receive].tolist(), strict=True)):
        ends.setdefault((one, other), []).append(row)
    buffered = np.zeros(len(pairs.send), np.bool_)
    for _ in range(_tries(program)):
        rows = next((ends[link] for link in circle if link in ends), None)
        if rows is None:
            return
        buffered[rows] = True
        circle = find_circle(meetings_of(program, meetings.rule, buffered=buffered))
        if not circle:
            break
    else:
        buffered[:] = True
        if meetings_of(program, meetings.rule, buffered=buffered).hangs:
            return
    names = tuple(str(program.action(index)) for index in pairs.send[buffered].tolist())
    text = "give every send a buffer" if buffered.all() else f"give a buffer to {_listed(names)}"
    yield Cure("buffer", text, program, meetings.rule, names)


def _if_cured(kind: str, text: str, program: Program, rule: MessageRule) -> Iterator[Cure]:
    if not meetings_of(program, rule).hangs:
        yield Cure(kind, text, program, rule)  # type: ignore[arg-type]


def _tries(program: Program) -> int:
    return min(200, _WORK // max(program.n_slots, 1))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more sends" if len(names) > 4 else "")


def _moves(meetings: Meetings, circle: tuple[Link, ...]) -> Iterator[tuple[int, int]]:
    """(slot, the slot it may go before) of each link that a move would undo; receives first, they need nothing."""
    program, slot = meetings.program, meetings.program.slot_of_action
    message = is_message(program)
    found = []
    for link, behind in zip(circle, circle[1:] + circle[:1], strict=True):
        here, head = link.awaited, behind.slot
        rows = np.flatnonzero(slot == here)
        if head >= here or program.rank_of_slot[head] != program.rank_of_slot[here] or not message[rows].all():
            continue
        needed = meetings.dependencies.source[np.isin(meetings.dependencies.target, rows)]
        needed = needed[~message[needed]]
        if not ((slot[needed] >= head) & (program.rank_of_action[needed] == program.rank_of_slot[here])).any():
            found.append((here, head))
    receives = (Kind.RECV_F, Kind.RECV_B)
    found.sort(key=lambda move: program.kind[program.slot_offsets[move[0]]] not in receives)
    yield from found


def _moved(program: Program, slot: int, head: int) -> Program:
    place = np.arange(program.n_slots) * 2
    place[slot] = 2 * head - 1
    of_action = place[program.slot_of_action]
    rows = np.argsort(of_action, kind="stable")
    return reordered(program, rows, of_action[rows])


def _without_messages(program: Program) -> Program:
    kept = ~is_message(program)
    names = ("kind", "stage", "micro_batch", "segment", "peer")
    columns = {name: getattr(program, name)[kept] for name in names}
    moved = np.cumsum(kept) - 1
    return rebuilt(program, columns, slot=program.slot_of_action[kept], rank=program.rank_of_action[kept], moved=moved)


_Attempt = Callable[[Meetings, tuple[Link, ...]], Iterator[Cure]]
_ATTEMPTS: dict[MessageRule, tuple[_Attempt, ...]] = {
    "rendezvous": (_post_first, _group, _buffer),
    "buffered": (_post_first,),
    "ordered": (_post_first, _second_stream, _buffer),
    "coalesced": (_group_per_peer, _post_first),
    "two_streams": (_post_first, _buffer),
}
