"""Who waits for whom in a program whose messages hang."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from explorer.core.meetings import Meetings, MessageRule
from explorer.core.rules import neighbourhood
from explorer.errors import CircularWaitError


class Link(NamedTuple):
    """One link of a circle: what stands at `slot` waits for what is at `awaited`, behind the next link's slot.

    Attributes:
        slot: the slot that cannot go on, counted over all ranks.
        awaited: the slot it needs, counted over all ranks.
    """

    slot: int
    awaited: int


def find_circle(meetings: Meetings) -> tuple[Link, ...]:
    """The links of one circle of `meetings`, each waiting for the next, the last for the first; () if none.

    The walk begins at the lowest rank that cannot go on, follows from each head of a line whatever it lacks, and the
    circle is turned so that its lowest rank comes first.
    """
    return _Walk(meetings).circle() if meetings.hangs else ()


def chain_of(meetings: Meetings, circle: tuple[Link, ...]) -> tuple[tuple[int, int, str], ...]:
    """(rank, slot, action as text) of each link."""
    program = meetings.program
    ranks = [int(program.rank_of_slot[link.slot]) for link in circle]
    return tuple(
        (rank, int(link.slot - program.rank_offsets[rank]), str(program.slot(link.slot)))
        for rank, link in zip(ranks, circle, strict=True)
    )


def told(meetings: Meetings, circle: tuple[Link, ...]) -> str:
    """The circle as words: ``rank 0 slot 7 0SEND_F3 waits for 1RECV_F3 of rank 1 → …``."""
    program, words = meetings.program, []
    for (rank, place, action), link in zip(chain_of(meetings, circle), circle, strict=True):
        other = int(program.rank_of_slot[link.awaited])
        words.append(f"rank {rank} slot {place} {action} waits for {program.slot(link.awaited)} of rank {other}")
    return " → ".join(words)


def refuse_hang(meetings: Meetings) -> None:
    """Raise if `meetings` hang.

    Raises:
        CircularWaitError: naming the chain, with the neighbourhoods drawn.
    """
    circle = find_circle(meetings)
    if circle:
        chain = chain_of(meetings, circle)
        drawn = "; ".join(f"rank {rank}: {neighbourhood(meetings.program, rank, place)}" for rank, place, _ in chain)
        raise CircularWaitError(
            f"messages must be able to finish; {RULE_WORDS[meetings.rule]} these wait for each other in a circle: "
            f"{told(meetings, circle)}; explorer.check_messages proposes a cure ({drawn})",
            chain=chain,
        )


RULE_WORDS: dict[MessageRule, str] = {
    "rendezvous": "where a send ends only when its receive is posted",
    "buffered": "even with a buffer for every send",
    "ordered": "on one ordered stream a rank",
    "coalesced": "in groups that move together or not at all",
    "two_streams": "on one stream a rank for sends and one for receives",
}


class _Walk:
    """From a line that cannot go on to the line it waits for, until one comes up again."""

    def __init__(self, meetings: Meetings) -> None:
        self._meetings = meetings
        program, done = meetings.program, meetings.done
        slot = program.slot_of_action
        self._over = done[meetings.finish]
        open_slots = np.flatnonzero(~self._over)
        lines, first = np.unique(meetings.line_of_slot[open_slots], return_index=True)
        self._heads: dict[int, int] = dict(zip(lines.tolist(), open_slots[first].tolist(), strict=True))
        self._send, self._receive = slot[meetings.pairs.send], slot[meetings.pairs.receive]
        self._waiting = ~done[meetings.transfer]

    def circle(self) -> tuple[Link, ...]:
        line = min(self._heads, key=lambda line: (self._rank(self._heads[line]), line))
        seen: dict[int, list[Link]] = {}
        while line not in seen:
            seen[line] = self._from(self._heads[line])
            line = int(self._meetings.line_of_slot[seen[line][-1].awaited])
        lines = list(seen)
        links = [link for line in lines[lines.index(line) :] for link in seen[line]]
        lowest = min(range(len(links)), key=lambda k: (self._rank(links[k].slot), links[k].slot))
        return tuple(links[lowest:] + links[:lowest])

    def _rank(self, slot: int) -> int:
        return int(self._meetings.program.rank_of_slot[slot])

    def _from(self, slot: int) -> list[Link]:
        """The links from the head of a line to a slot that is not posted yet."""
        meetings = self._meetings
        if not meetings.done[meetings.begin[slot]]:
            return [Link(slot, self._lacks(slot))]
        before: dict[int, int] = {slot: -1}
        queue = deque([slot])
        while queue:
            here = queue.popleft()
            if not meetings.done[meetings.begin[here]]:
                return _path(before, here)
            for other in self._meets(here):
                if other not in before:
                    before[other] = here
                    queue.append(other)
        raise AssertionError("a posted slot whose partners are all posted is over")

    def _meets(self, slot: int) -> list[int]:
        """The slots that a posted one waits to meet, in order."""
        receives_from = self._send[self._waiting & (self._receive == slot)]
        sends_to = self._receive[self._waiting & (self._send == slot) & ~self._meetings.buffered]
        return sorted({*receives_from.tolist(), *sends_to.tolist()})

    def _lacks(self, slot: int) -> int:
        """A slot not over yet that the head of a line waits for before it can be posted."""
        meetings, program = self._meetings, self._meetings.program
        low, high = meetings.edge_offsets[slot], meetings.edge_offsets[slot + 1]
        for step in meetings.edges.source[low:high].tolist():
            if not meetings.done[step]:
                return self._slot_of(step)
        raise AssertionError(f"{program.slot(slot)} waits for nothing")

    def _slot_of(self, step: int) -> int:
        n_slots = self._meetings.program.n_slots
        return step if step < n_slots else int(np.flatnonzero(self._meetings.finish == step)[0])


def _path(before: dict[int, int], last: int) -> list[Link]:
    links = []
    while before[last] >= 0:
        links.append(Link(before[last], last))
        last = before[last]
    return links[::-1]
