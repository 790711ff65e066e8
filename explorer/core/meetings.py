"""What a program with explicit messages waits for, under each rule of how sends and receives meet.

Every compute slot is one step. A slot of messages is two, posted and over, and each message a third between them:
its transfer. Who waits for which of them is all that the rules differ in:

    rendezvous   a rank stands at each of its messages until both ends are posted and the bytes have moved
    buffered     as rendezvous, but a send is over once it is posted; its bytes wait for the receive
    ordered      messages leave the rank's own line for a stream of the rank, where they pass one after another;
                 a rank stands still only where it needs what a receive brings
    two_streams  as ordered, with one stream for sends and one for receives
    coalesced    as rendezvous, but a slot's messages move together or not at all: when every slot they meet, and
                 every slot those meet, is posted
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from explorer.core.action import Kind, among
from explorer.core.graph import Graph
from explorer.core.pairs import Pairs, is_message, message_pairs
from explorer.core.program import Program
from explorer.core.rules import (
    BACKWARD_MESSAGE,
    FORWARD_MESSAGE,
    Dependencies,
    check_complete,
    dependencies,
    neighbourhood,
)
from explorer.core.steps import components, sorted_edges
from explorer.errors import InputError, ProgramError, shown

Indices = npt.NDArray[np.int64]
MessageRule = Literal["rendezvous", "buffered", "ordered", "coalesced", "two_streams"]
MESSAGE_RULES: tuple[MessageRule, ...] = get_args(MessageRule)
STREAMED_RULES: tuple[MessageRule, ...] = ("ordered", "two_streams")


class Edges(NamedTuple):
    """Which step waits for which, as columns of equal length.

    Attributes:
        source: (n,) int64, the step waited for.
        target: (n,) int64, the step that waits.
        from_start: (n,) bool, whether the source need only have begun.
        row: (n,) int64, the row of `dependencies` it stands for, whose lag it has; −1 for none.
    """

    source: Indices
    target: Indices
    from_start: npt.NDArray[np.bool_]
    row: Indices


@dataclass(frozen=True, eq=False)
class Meetings:
    """The steps of a program with messages, and what each waits for: it hangs if they wait in a circle.

    Attributes:
        program: that this was made of.
        rule: how messages meet.
        pairs: the messages.
        buffered: (n_messages,) bool, whose send is over once it is posted.
        dependencies: between actions, messages last, in order of `pairs`.
        begin: (n_slots,) int64, the step at which each slot is posted, or runs.
        finish: (n_slots,) int64, the step after which each slot is over.
        transfer: (n_messages,) int64, the step in which each message moves; coalesced ones share it.
        edge_offsets: (n_steps + 1,) int64, where each step's rows begin in `edges`.
        edges: by target.
        order: (n_done,) int64, the steps that can be done, each after all it waits for.
    """

    program: Program
    rule: MessageRule
    pairs: Pairs
    buffered: npt.NDArray[np.bool_]
    dependencies: Dependencies
    begin: Indices
    finish: Indices
    transfer: Indices
    edge_offsets: Indices
    edges: Edges
    order: Indices

    @property
    def n_steps(self) -> int:
        """Number of steps: slots, their ends, and messages."""
        return len(self.edge_offsets) - 1

    @property
    def hangs(self) -> bool:
        """Whether some step can never be done."""
        return len(self.order) < self.n_steps

    @cached_property
    def done(self) -> npt.NDArray[np.bool_]:
        """(n_steps,) which steps can be done."""
        done = np.zeros(self.n_steps, np.bool_)
        done[self.order] = True
        return done

    @cached_property
    def links(self) -> Graph:
        """The dependencies as a Graph, for what `Costs` say of messages; its order is that of the slots' beginnings."""
        slot = self.program.slot_of_action
        begun = self.order[self.order < self.program.n_slots]
        offsets = np.zeros(self.program.n_slots + 1, np.int64)
        return Graph(self.program, self.dependencies, offsets, slot[self.dependencies.source], begun)

    @cached_property
    def line_of_slot(self) -> Indices:
        """(n_slots,) the line each slot stands in: its rank's own, or one of its streams."""
        return _lines(self.program, self.rule)


def meetings_of(program: Program, rule: MessageRule, *, buffered: npt.NDArray[np.bool_] | None = None) -> Meetings:
    """The steps of `program` under `rule`.

    A program of messages alone is fine too; with computation it must be complete.

    Args:
        program: with explicit messages.
        rule: how they meet.
        buffered: (n_messages,) bool, which sends have a buffer besides; none if not given.

    Raises:
        InputError: if there is no such rule, or `program` is no Program.
        ProgramError: if the program is incomplete, a message has but one end, or shares a slot with computation.
    """
    check_rule(rule)
    if not isinstance(program, Program):
        raise InputError(f"this needs a Program; got {type(program).__name__}", argument="program")
    if not is_message(program).all():
        check_complete(program)
    pairs = message_pairs(program)
    early = np.zeros(len(pairs.send), np.bool_) if buffered is None else buffered
    early = early | (rule == "buffered")
    return _Maker(program, rule, pairs, early).make()


def check_rule(rule: str) -> None:
    """Refuse a rule of messages that does not exist.

    Raises:
        InputError: naming those that do.
    """
    if rule not in MESSAGE_RULES:
        raise InputError(
            f"messages meet in one of these ways: {', '.join(MESSAGE_RULES)}; got {shown(rule)}; try 'rendezvous'",
            argument="messages",
        )


class _Maker:
    """Lays out the steps and joins them."""

    def __init__(self, program: Program, rule: MessageRule, pairs: Pairs, buffered: npt.NDArray[np.bool_]) -> None:
        self._program, self._rule, self._pairs, self._buffered = program, rule, pairs, buffered
        self._is_message = _message_slots(program)
        rows = np.flatnonzero(self._is_message)
        self._begin = np.arange(program.n_slots)
        self._finish = self._begin.copy()
        self._finish[rows] = program.n_slots + np.arange(len(rows))
        slot = program.slot_of_action
        self._send, self._receive = slot[pairs.send], slot[pairs.receive]
        first = program.n_slots + len(rows)
        groups = np.arange(len(self._send))
        if rule == "coalesced":
            groups = components(program.n_slots, self._send, self._receive)
        self._transfer = first + groups
        self._n_steps = int(self._transfer.max(initial=first - 1)) + 1

    def make(self) -> Meetings:
        needed = self._dependencies()
        parts = [*self._in_line(), *self._posted(), *self._data(needed), *self._met()]
        found = Edges(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        rows, offsets, order = sorted_edges(found.source, found.target, self._n_steps)
        edges = Edges(found.source[rows], found.target[rows], found.from_start[rows], found.row[rows])
        return Meetings(
            self._program,
            self._rule,
            self._pairs,
            self._buffered,
            needed,
            self._begin,
            self._finish,
            self._transfer,
            offsets,
            edges,
            order,
        )

    def _dependencies(self) -> Dependencies:
        """The rules' own, with the pairs in place of theirs between a send and a receive."""
        found, message = dependencies(self._program), is_message(self._program)
        found = found.take(np.flatnonzero(~(message[found.source] & message[found.target])))
        send, receive = self._pairs
        n = len(send)
        back = self._program.kind[send] == Kind.SEND_B
        direction = np.where(back, BACKWARD_MESSAGE, FORWARD_MESSAGE).astype(np.int8)
        met = Dependencies(send, receive, direction, np.zeros(n), np.zeros(n, np.bool_))
        parts = [found, met]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Dependencies(*columns)

    def _in_line(self) -> list[Edges]:
        """Each slot after the one before it in its line."""
        line = _lines(self._program, self._rule)
        order = np.argsort(line, kind="stable")
        before, after = order[:-1], order[1:]
        same = line[before] == line[after]
        return [_join(self._finish[before[same]], self._begin[after[same]])]

    def _posted(self) -> list[Edges]:
        """A streamed message once its rank has come to it, past the computation before; and over once posted."""
        messages = np.flatnonzero(self._is_message)
        parts = [_join(self._begin[messages], self._finish[messages])]
        if self._rule in STREAMED_RULES:
            place = np.where(self._is_message, -1, np.arange(self._program.n_slots))
            computed = np.maximum.accumulate(place)[messages]
            own = computed >= self._program.rank_offsets[self._program.rank_of_slot[messages]]
            parts.append(_join(computed[own], self._begin[messages[own]]))
        return parts

    def _data(self, needed: Dependencies) -> list[Edges]:
        n = len(needed.source) - len(self._pairs.send)
        slot = self._program.slot_of_action
        source, target, early = slot[needed.source[:n]], slot[needed.target[:n]], needed.from_start[:n]
        return [
            Edges(np.where(early, self._begin[source], self._finish[source]), self._begin[target], early, np.arange(n))
        ]

    def _met(self) -> list[Edges]:
        held = ~self._buffered
        transfer, send, receive = self._transfer, self._send, self._receive
        return [
            _join(self._begin[send], transfer),
            _join(self._begin[receive[held]], transfer[held]),
            _join(transfer[held], self._finish[send[held]]),
            _join(transfer, self._finish[receive]),
        ]


def _join(source: Indices, target: Indices) -> Edges:
    n = len(source)
    return Edges(source, target, np.zeros(n, np.bool_), np.full(n, -1))


def _message_slots(program: Program) -> npt.NDArray[np.bool_]:
    """(n_slots,) whether each slot holds messages."""
    message = is_message(program)
    counts = np.bincount(program.slot_of_action[message], minlength=program.n_slots)
    mixed = (counts > 0) & (counts < np.diff(program.slot_offsets))
    if mixed.any():
        index = int(np.flatnonzero(mixed)[0])
        rank = int(program.rank_of_slot[index])
        slot = index - int(program.rank_offsets[rank])
        drawn = neighbourhood(program, rank, slot)
        raise ProgramError(
            f"a slot holds messages or computation, not both; got {program.slot(index)}; "
            f"give its messages their own slot (rank {rank}, slot {slot}: {drawn})",
            rank=rank,
            slot=slot,
        )
    return np.asarray(counts > 0)


def _lines(program: Program, rule: MessageRule) -> Indices:
    line = program.rank_of_slot.astype(np.int64)
    if rule in STREAMED_RULES:
        messages = _message_slots(program)
        kind = program.kind[program.slot_offsets[:-1]]
        stream = np.where(among(kind, Kind.RECV_F, Kind.RECV_B) & (rule == "two_streams"), 2, 1)
        line = line + program.n_ranks * np.where(messages, stream, 0)
    return line
