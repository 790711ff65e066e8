"""What a check of the message order found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from explorer.core import MessageRule, Program


@dataclass(frozen=True, eq=False)
class Cure:
    """A change after which a program no longer hangs; checked again before it is proposed.

    Attributes:
        kind: "post_first", "group", "group_per_peer", "second_stream" or "buffer".
        text: what to do, as a clause.
        program: the program with that done.
        messages: the rule of messages with that done.
        buffered: the sends that need a buffer, as text; empty where none do.
    """

    kind: Literal["post_first", "group", "group_per_peer", "second_stream", "buffer"]
    text: str
    program: Program
    messages: MessageRule
    buffered: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class MessageReport:
    """Whether the messages of a program hang, who waits for whom, and what would do.

    Attributes:
        messages: the rule of messages it was checked under.
        hangs: whether it can never finish.
        chain: (rank, slot, action as text) of each link of one circle, each waiting for the next, the last for the
            first; empty if it does not hang.
        awaited: what each link waits for, as text, on the rank of the next link.
        cure: the best change that lets it finish, or None.
        sentence: all of this in words, with the best cure.
        look: gives the cures, one at a time.
    """

    messages: MessageRule
    hangs: bool
    chain: tuple[tuple[int, int, str], ...]
    awaited: tuple[str, ...]
    cure: Cure | None
    sentence: str
    look: Callable[[], Iterator[Cure]] = field(repr=False)

    @cached_property
    def cures(self) -> tuple[Cure, ...]:
        """All cures, best first; looked for when first asked for."""
        return tuple(self.look())

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the circle, the first again at the end: (0, 1, 0)."""
        ranks = tuple(rank for rank, _, _ in self.chain)
        return ranks + ranks[:1]

    def __str__(self) -> str:
        return self.sentence
