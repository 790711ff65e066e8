"""An order changed by hand, one action at a time, and what was changed undone and done again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Action, Program, check, graph_of
from explorer.errors import CircularWaitError, InputError, ProgramError, shown
from explorer.lowering.columns import reordered
from explorer.lowering.obstacle import find_obstacle

_EDITED = ", edited"


def move(
    program: Program, action: str | Action, *, before: str | Action | None = None, slot: int | None = None
) -> Program:
    """`program` with an action at another place in the order of its rank; what is begun together moves together.

    Args:
        program: stays as it is.
        action: like "1B3".
        before: the action of the same rank that it is to stand before; or
        slot: the place it is to have on its rank, from 0, as a slot of the new order.

    Returns:
        A checked program, like any other; `program` itself if the action stands there already.

    Raises:
        InputError: if not exactly one of `before` and `slot` is given, or there is no such place.
        ProgramError: if the program has no such action, or it runs on another rank than `before`.
        CircularWaitError: if actions would wait for each other, with the reason and the nearest place there is.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=3)
        >>> print(ex.move(program, "0F2", before="0B0"))
        rank 0: 0F0 0F1 0F2 0B0 0B1 0B2
        rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
    """
    here = _slot_of(program, action)
    place = _place(program, action, here, before, slot)
    if place == here:
        return check(program)
    rows, slots = _moved_rows(program, here, place)
    name = program.name if program.name.endswith(_EDITED) else program.name + _EDITED
    graph = graph_of(program)
    try:
        return check(replace(reordered(program, rows, slots), name=name))
    except CircularWaitError as error:
        found = find_obstacle(graph, here, place)
        if found is None:  # buffers, whose waits depend on the order itself
            raise
        sentence = _refusal(program, here, place, found.slot, found.sentence)
        raise CircularWaitError(sentence, chain=error.chain) from None


class Edit(NamedTuple):
    """One action moved.

    Attributes:
        words: "0F4 moved before 0B1 on rank 0".
        action: that was moved, like "0F4".
        rank: whose order it is.
        slot: the place it has there now.
        program: with it moved.
    """

    words: str
    action: str
    rank: int
    slot: int
    program: Program


@dataclass(frozen=True, eq=False)
class Edits:
    """A program, and the moves made in it: a value, of which each step gives another.

    Attributes:
        original: as it was.
        done: moves, in order.
        undone: moves that can be done again, the next one last.

    Example:
        >>> import explorer as ex
        >>> edits = ex.Edits(ex.schedule("1f1b", n_ranks=2, n_micro_batches=3)).move("0F2", before="0B0")
        >>> edits.done[-1].words
        '0F2 moved before 0B0 on rank 0'
        >>> edits.undo().program.order(0) == edits.original.order(0)
        True
    """

    original: Program
    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    @property
    def program(self) -> Program:
        """With all moves that are done."""
        return self.done[-1].program if self.done else self.original

    def move(self, action: str | Action, *, before: str | Action | None = None, slot: int | None = None) -> Edits:
        """Move an action as `explorer.move` does; what was undone cannot be done again then.

        Raises:
            ExplorerError: as `explorer.move`.
        """
        program = move(self.program, action, before=before, slot=slot)
        if program is self.program:
            return self
        return Edits(self.original, (*self.done, _edit(program, action)))

    def undo(self) -> Edits:
        """Without the last move.

        Raises:
            InputError: if there is none.
        """
        if not self.done:
            raise InputError("only a move that was made can be undone; got none; move an action first")
        return Edits(self.original, self.done[:-1], (*self.undone, self.done[-1]))

    def redo(self) -> Edits:
        """With the move that was undone last.

        Raises:
            InputError: if there is none.
        """
        if not self.undone:
            raise InputError("only a move that was undone can be done again; got none; undo one first")
        return Edits(self.original, (*self.done, self.undone[-1]), self.undone[:-1])


def place_of(program: Program, action: str | Action) -> tuple[int, int]:
    """The rank of an action, and its slot there.

    Raises:
        ProgramError: if the program does not have it, or more than once.
    """
    slot = _slot_of(program, action)
    rank = int(program.rank_of_slot[slot])
    return rank, slot - int(program.rank_offsets[rank])


def _slot_of(program: Program, action: str | Action) -> int:
    """The slot of an action, counted over all ranks."""
    wanted = action if isinstance(action, Action) else Action.parse(action)
    found = (program.kind == wanted.kind) & (program.stage == wanted.stage)
    found &= (program.micro_batch == wanted.micro_batch) & (program.segment == wanted.segment)
    rows = np.flatnonzero(found)
    if len(rows) != 1:
        there = f"{len(rows)} of it" if len(rows) else "none"
        raise ProgramError(
            f"an action that is moved is in the program once; {program.name[:60]} has {there}: {wanted}; name another"
        )
    return int(program.slot_of_action[rows[0]])


def _place(program: Program, action: object, here: int, before: str | Action | None, slot: int | None) -> int:
    """The place that the slot `here` is to have, counted over all ranks, in the order without it."""
    if (before is None) == (slot is None):
        came = "both" if slot is not None else "neither"
        raise InputError(
            f"a move goes before an action or to a slot of its rank; got {came}; give one", argument="before"
        )
    rank = int(program.rank_of_slot[here])
    first, beyond = (int(end) for end in program.rank_offsets[rank : rank + 2])
    if before is not None:
        there = _slot_of(program, before)
        if program.rank_of_slot[there] != rank:
            raise ProgramError(
                f"an action moves within the order of its rank; got {action} of rank {rank} before {before} of rank "
                f"{program.rank_of_slot[there]}; name one of rank {rank}",
                rank=rank,
            )
        return there - 1 if there > here else there
    whole = isinstance(slot, (int, np.integer)) and not isinstance(slot, bool)
    if not whole or not 0 <= int(slot or 0) < beyond - first:
        raise InputError(
            f"slot is a whole number from 0 to {beyond - first - 1}, the last of rank {rank}; got {shown(slot)}; try 0",
            argument="slot",
            legal=(0,),
        )
    return first + int(slot or 0)


def _moved_rows(program: Program, here: int, place: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(n_actions,) the rows in their new order, and the slot of each of them."""
    order = np.insert(np.delete(np.arange(program.n_slots), here), place, here)
    new = np.empty(program.n_slots, np.int64)
    new[order] = np.arange(program.n_slots)
    rows = np.argsort(new[program.slot_of_action], kind="stable")
    return rows, new[program.slot_of_action][rows]


def _refusal(program: Program, here: int, place: int, obstacle: int, why: str) -> str:
    """The rule, what came, and the nearest place there is."""
    rank = int(program.rank_of_slot[here])
    moved, passed = program.slot(here), program.slot(obstacle)
    side, other = ("before", "behind") if place < here else ("behind", "before")
    return f"{moved} cannot stand {side} {passed} on rank {rank}: {why}; keep it {other} {passed}"


def _edit(program: Program, action: str | Action) -> Edit:
    """What was done to get this program, by where the action stands in it."""
    rank, slot = place_of(program, action)
    here = int(program.rank_offsets[rank]) + slot
    words = f"{program.slot(here)} moved to the end of rank {rank}"
    if here + 1 < program.rank_offsets[rank + 1]:
        words = f"{program.slot(here)} moved before {program.slot(here + 1)} on rank {rank}"
    return Edit(words, str(action), rank, slot, program)
