"""Orders drawn in text, a line a rank and a column a slot, as the schedules' own descriptions have them."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Program, check, graph_of
from explorer.core.inference import inferred
from explorer.core.words import MOST_RANKS, program_of_words
from explorer.errors import InputError
from explorer.io.loss import warn_of_loss

_MOST_WORDS = 1_000_000
_MOST_CELLS = 4_000_000  # of a drawing
_IDLE = frozenset((".", "·", "-", "–", "|"))
_RANK = re.compile(r"\s*rank\s+([0-9]{1,9})\s*:?", re.IGNORECASE)
_NOTE = re.compile(r"\s(?:#|stages?\s).*", re.IGNORECASE)
_BARE = re.compile(r"(?:^|(?<=[\s(;]))(?=[A-Z])")  # where a stage is left out


class _Line(NamedTuple):
    number: int
    text: str


def from_grid(text: str, *, name: str = "own") -> Program:
    """The program that a drawing shows, checked: a line a rank, slots between blanks.

        rank 0  F0 F1 .  .  B0 B1
        rank 1  .  F0 B0 F1 B1 .

    ``F0`` is micro-batch 0 forward on the one stage of its rank; with several stages a rank the stage stands before
    it, ``2F0``. ``(2F1;1B0)`` begin together. Dots are idle, which the orders tell anyway: they may be left out. So
    may ``rank 0``. A note may follow behind ``#`` or ``stages``. A message past the next stage names the rank at its
    other end, ``SEND_F0@3``. What `print(program)` gives can be read too.

    Args:
        text: the drawing.
        name: of the program.

    Raises:
        InputError: if a word names no action; it names line and column.
        ProgramError: if an action is missing, doubled, misplaced or out of range.
        CircularWaitError: if actions wait for each other in a circle.
    """
    if not isinstance(text, str):
        raise InputError(
            f"a drawing is a text with a line a rank; got {type(text).__name__}; try 'F0 B0'", argument="text"
        )
    if len(text) > 16 * _MOST_WORDS:
        raise InputError(
            f"a drawing has at most {16 * _MOST_WORDS:,} characters; got {len(text):,}; try explorer.from_frame",
            argument="text",
        )
    lines = [_Line(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not 0 < len(lines) <= MOST_RANKS:
        raise InputError(
            f"a drawing has a line for each rank{f', at most {MOST_RANKS:,}' if lines else ''}; "
            f"got {f'{len(lines):,}' if lines else 'none'}; try 'F0 B0'",
            argument="text",
        )
    words = text.split()
    n_words = len(words) - sum(map(words.count, _IDLE))
    if n_words > _MOST_WORDS:
        raise InputError(
            f"a drawing has at most {_MOST_WORDS:,} words; got {n_words:,}; try explorer.from_frame", argument="text"
        )
    orders = [_words(_body(line, rank), rank) for rank, line in enumerate(lines)]
    return check(inferred(program_of_words(str(name), orders, lambda rank, place: _unread(lines[rank], rank, place))))


def _body(line: _Line, rank: int) -> str:
    """What of a line is drawn, without title and note, in its own columns."""
    body = _NOTE.sub("", line.text)
    titled = _RANK.match(body)
    if not titled:
        return body
    if int(titled[1]) != rank:
        raise InputError(
            f"ranks are drawn from 0 on, each once; got rank {titled[1]} in line {line.number}; "
            f"it is the place of rank {rank}",
            argument="text",
        )
    return " " * titled.end() + body[titled.end() :]


def _words(body: str, rank: int) -> list[str]:
    return [word for word in _BARE.sub(str(rank), body).split() if word not in _IDLE]


def _unread(line: _Line, rank: int, place: int) -> InputError:
    """The refusal of the word at a place of a line."""
    drawn = (word for word in re.finditer(r"\S+", _body(line, rank)) if word[0] not in _IDLE)
    word = next(islice(drawn, place, None))
    return InputError(
        f"a slot reads F0, or 2F0 with its stage, or (2F1;1B0); got {word[0][:40]!r} in line {line.number}, "
        f"column {word.start() + 1}; a dot is idle",
        argument="text",
    )


def to_grid(program: Program) -> str:
    """`program` drawn in text, as `from_grid` reads it: every slot takes one column and begins as early as it can.

    The stage stands before an action only where a rank has several. Further waits, capacities and weight versions
    cannot be drawn; a warning says so.

    Args:
        program: any that `check` approves.

    Raises:
        ProgramError: if it is incomplete or cannot finish.
        InputError: if it is no program, or one too large to be drawn.

    Example:
        >>> import explorer as ex
        >>> print(ex.to_grid(ex.schedule("1f1b", n_ranks=2, n_micro_batches=2)))
        rank 0  F0 F1 .  B0 .  B1
        rank 1  .  F0 B0 F1 B1 .
    """
    column = _columns(program)
    warn_of_loss(program, "a drawing")
    width = int(column.max()) + 1
    if width * program.n_ranks > _MOST_CELLS:
        raise InputError(
            f"a drawing has at most {_MOST_CELLS:,} cells; got {program.n_ranks:,} ranks × {width:,} columns; "
            "try program.to_frame()",
            argument="program",
        )
    bare = bool((program.stage == program.rank_of_action).all())
    lines, words = [["."] * width for _ in range(program.n_ranks)], program.words()
    slots = zip(program.rank_of_slot.tolist(), column.tolist(), pairwise(program.slot_offsets.tolist()), strict=True)
    for rank, k, (first, last) in slots:
        word = words[first] if last == first + 1 else f"({';'.join(words[first:last])})"
        lines[rank][k] = re.sub(r"(^|[(;])[0-9]+", r"\1", word) if bare else word
    cell = max((len(word) for line in lines for word in line), default=1)
    margin = len(f"rank {program.n_ranks - 1}") + 2
    rows = (" ".join(word.ljust(cell) for word in line).rstrip() for line in lines)
    return "\n".join(f"rank {rank}".ljust(margin) + row for rank, row in enumerate(rows))


def _columns(program: Program) -> npt.NDArray[np.int64]:
    """(n_slots,) the earliest column of each slot if all take one."""
    graph = graph_of(program)
    column = [0] * program.n_slots
    next_of = [0] * program.n_ranks
    offsets, source = graph.edge_offsets.tolist(), graph.source_slot.tolist()
    rank_of = program.rank_of_slot.tolist()
    for slot in graph.order.tolist():
        earliest = next_of[rank_of[slot]]
        for edge in range(offsets[slot], offsets[slot + 1]):
            if source[edge] != slot:  # parts of one slot begin together
                earliest = max(earliest, column[source[edge]] + 1)
        column[slot] = earliest
        next_of[rank_of[slot]] = earliest + 1
    return np.asarray(column, np.int64)
