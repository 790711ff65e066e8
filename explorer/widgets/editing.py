"""The order that the app shows: the schedule's own, or one edited by hand, which nothing silently throws away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from explorer.core import Action, Kind, Trace
from explorer.errors import InputError
from explorer.figures.units import time_unit
from explorer.lowering import Edits
from explorer.lowering.edit import place_of
from explorer.schedules import register
from explorer.widgets.settings import Settings

ORDER_FIELDS = (
    "schedule",
    "options",
    "warm_up",
    "n_ranks",
    "n_chunks",
    "n_micro_batches",
)  # which order a schedule gives
MOST_EDITED = 500  # actions; more are too narrow to take hold of


class Left(NamedTuple):
    """An edited order that the controls went away from.

    Attributes:
        fields: what ORDER_FIELDS said.
        edits: of that order.
    """

    fields: dict[str, Any]
    edits: Edits


class Editing:
    """The edits of the order that the controls stand for, and those of orders that they stood for before."""

    def __init__(self, settings: Settings) -> None:
        self._now: Left | None = None
        self._left: list[Left] = []
        if settings.moves:
            edits = Edits(replace(settings, moves=()).program())
            for action, slot in settings.moves:
                edits = edits.move(action, slot=slot)
            self.keep(settings, edits)

    @property
    def done(self) -> int:
        """How many moves the order shown differs by from the schedule's own."""
        return len(self._now.edits.done) if self._now else 0

    @property
    def can_undo(self) -> bool:
        """Whether there is a move to undo, or an edited order to go back to."""
        return bool(self.done or self._left)

    @property
    def can_redo(self) -> bool:
        """Whether a move was undone last."""
        return bool(self._now and self._now.edits.undone)

    @property
    def moves(self) -> tuple[tuple[str, int], ...]:
        """The edits as Settings hold them."""
        return tuple((edit.action, edit.slot) for edit in self._now.edits.done) if self._now else ()

    def edits(self, settings: Settings) -> Edits:
        """The edits of the order that `settings` stand for; none yet, if it is the schedule's own."""
        return self._now.edits if self._now else Edits(settings.program())

    def keep(self, settings: Settings, edits: Edits) -> None:
        """Show these edits of the order that `settings` stand for."""
        self._now = Left(_order_fields(settings), edits)

    def strays(self, settings: Settings) -> bool:
        """Whether `settings` stand for another order than was edited."""
        return self._now is not None and self._now.fields != _order_fields(settings)

    def leave(self) -> str:
        """Show the schedule's own order; what there is to say of it, "" if that was shown already."""
        left, self._now = self._now, None
        if left is None or not left.edits.done:
            return ""
        self._left.append(left)
        n_moves = len(left.edits.done)
        moves = "1 move" if n_moves == 1 else f"{n_moves} moves"
        return f"The edited order of {_called(left.fields)} ({moves}) was left for this one; Undo goes back to it"

    def back(self) -> Left:
        """Show the edited order again that was left last.

        Raises:
            InputError: if there is none.
        """
        if not self._left:
            raise InputError("only a move that was made can be undone; got none; move an action first")
        self._now = self._left.pop()
        return self._now

    def save(self, typed: str) -> str:
        """Register the edited order as a schedule that is called as `typed`; its name in the registry.

        Raises:
            InputError: if nothing was edited, or it cannot be called so.
        """
        if self._now is None or not self._now.edits.done:
            raise InputError("only an edited order is saved; got the schedule's own; move an action first")
        title = " ".join(typed.split())
        name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
        if not name:
            raise InputError(f"a schedule needs a name with a letter or a digit; got {typed[:40]!r}; try my order")
        register(name, self._now.edits.program, title=title)
        return name


def _order_fields(settings: Settings) -> dict[str, Any]:
    values = asdict(settings)
    return {name: values[name] for name in ORDER_FIELDS}


def _called(fields: Mapping[str, Any]) -> str:
    return f"{fields['schedule']} at {fields['n_ranks']} ranks and {fields['n_micro_batches']} micro-batches"


def move_by(edits: Edits, action: Action, slots: int) -> Edits:
    """One more move: so many slots to the right on its rank, or to the left.

    Raises:
        ExplorerError: if it cannot stand there.
    """
    rank, slot = place_of(edits.program, action)
    last = len(edits.program.order(rank)) - 1
    if not 0 <= slot + slots <= last:
        end = "first" if slots < 0 else "last"
        raise InputError(f"a move stays within its rank; {action} is the {end} of rank {rank} already")
    return edits.move(action, slot=slot + slots)


def move_before(edits: Edits, action: Action, other: Action | None) -> Edits:
    """One more move: to where the bar of `other` begins; None for the end of its rank.

    Raises:
        ExplorerError: if it cannot stand there.
    """
    rank, slot = place_of(edits.program, action)
    if other is None or other.kind in (Kind.U, Kind.G):  # which come behind every order
        return edits.move(action, slot=len(edits.program.order(rank)) - 1)
    if place_of(edits.program, other) == (rank, slot):  # begun together
        return edits
    return edits.move(action, before=other)


def consequence(before: Trace, after: Trace, rank: int) -> str:
    """What an edit changed: the makespan, and the peak of the rank whose order it was."""
    unit = time_unit(after.makespan, "wall")
    spans = [f"{trace.makespan * unit.factor:.4g}" for trace in (before, after)]
    peaks = [str(trace.peak_in_flight[rank]) for trace in (before, after)]
    return f"makespan {_change(spans, ' ' + unit.name)}, peak on rank {rank} {_change(peaks, '')}"


def _change(values: list[str], unit: str) -> str:
    one, other = values
    return f"stays {other}{unit}" if one == other else f"{one} → {other}{unit}"
