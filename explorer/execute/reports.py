"""What ranks tell of their work, as bytes: plain numbers where there is much of it.

A rank tells while it works, with cold caches and on a core that its next operation waits for: rows of numbers cost a
quarter of what pickled objects do.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any

from explorer.core import Action, Category, Kind
from explorer.execute._torch_ranks import Parcel
from explorer.execute.by_value import from_bytes, to_bytes
from explorer.execute.events import Memory, SlotEnd, Updated

_Plain = tuple[Any, ...]


def to_report(what: str, step: int, value: Any) -> bytes:
    """One report as bytes.

    Args:
        what: it is of: "begin", "rows", "end" and so on.
        step: it belongs to.
        value: of it; of "rows", a list of what has happened.
    """
    return to_bytes((what, step, _packed(value) if what == "rows" else value), what="report")


def from_report(data: bytes) -> tuple[str, int, Any]:
    """What `to_report` was given; only our own workers write it."""
    what, step, value = from_bytes(data)
    return what, step, _unpacked(value) if what == "rows" else value


def _packed(rows: Sequence[Any]) -> bytes | list[Any]:
    try:
        return marshal.dumps([_PLAIN[type(row)](row) for row in rows])
    except KeyError:
        return list(rows)  # a fault is among them: seldom, and an object


def _unpacked(packed: bytes | list[Any]) -> list[Any]:
    if isinstance(packed, list):
        return packed
    return [_MADE[number](*fields) for number, *fields in marshal.loads(packed)]


def _of_slot(row: SlotEnd) -> _Plain:
    actions = [(int(kind), *where) for kind, *where in row.actions]
    return 0, row.step, row.rank, row.slot, actions, row.seconds, row.begun, row.ended, row.moments


def _slot(step: int, rank: int, slot: int, actions: list[_Plain], *times: Any) -> SlotEnd:
    return SlotEnd(step, rank, slot, tuple(Action(Kind(kind), *where) for kind, *where in actions), *times)


def _of_parcel(row: Parcel) -> _Plain:
    kind, *rest = row
    return 1, int(kind), *rest


def _parcel(kind: int, *rest: Any) -> Parcel:
    return Parcel(Kind(kind), *rest)


def _of_memory(row: Memory) -> _Plain:
    category = int(row.category)
    return 2, row.step, row.slot, row.at_end, row.rank, category, row.stage, row.micro_batch, row.delta


def _memory(step: int, slot: int, at_end: bool, rank: int, category: int, *rest: int) -> Memory:
    return Memory(step, slot, at_end, rank, Category(category), *rest)


def _of_update(row: Updated) -> _Plain:
    return 3, row.step, row.rank, row.stage, row.seconds, row.begun


_PLAIN: dict[type, Callable[[Any], _Plain]] = {
    SlotEnd: _of_slot,
    Parcel: _of_parcel,
    Memory: _of_memory,
    Updated: _of_update,
}
_MADE: list[Callable[..., Any]] = [_slot, _parcel, _memory, Updated]
