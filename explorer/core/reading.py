"""What `Program.from_orders` is given, read and refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core.action import Action, Kind, Overlap, parse_slot
from explorer.core.placement import Placement
from explorer.errors import InputError, ProgramError, shown

Indices = npt.NDArray[np.int64]
Order = str | Iterable[Action | Overlap | str]

_MOST = 2**31  # what a column can hold
_LONGEST_NAME = 200
_FREE = 10_000  # slots of a rank that are never too many
_MOST_PER_MICRO_BATCH = 16 * len(Kind)  # slots of a rank: stages or segments times kinds, and more than any has
_SHOWN = 80  # characters of what came


def check_arguments(name: object, placement: object, n_micro_batches: object, n_segments: object) -> None:
    """Refuse what no program can be made with, before anything is made of it.

    Raises:
        InputError: naming the argument.
    """
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise unlike("name", f"a text of at most {_LONGEST_NAME} characters", named(name), "'own'")
    if not isinstance(placement, Placement):
        raise unlike("placement", "a Placement", named(placement), "explorer.Placement.looped(n_ranks)")
    for argument, count, advice in (("n_micro_batches", n_micro_batches, "4"), ("n_segments", n_segments, "1")):
        whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
        if not whole or not 1 <= count < _MOST:  # type: ignore[operator]
            raise unlike(argument, "a whole number from 1 to 2³¹ − 1", named(count), advice)


def read_orders(orders: object, n_ranks: int, n_micro_batches: int) -> list[list[tuple[Action, ...]]]:
    """The slots of each rank; of an order that is made as it is read, no more than any program could have.

    Raises:
        InputError: if something in it is no action.
        ProgramError: if there is not one order for each rank.
    """
    if isinstance(orders, str) or not isinstance(orders, Sequence):
        raise unlike("orders", "a list of one order a rank", named(orders), '["0F0 0B0", "1F0 1B0"]')
    if len(orders) != n_ranks:
        raise ProgramError(
            f"a program needs one order a rank, {n_ranks} here; got {len(orders)}; an order may be empty"
        )
    most = max(_FREE, _MOST_PER_MICRO_BATCH * n_micro_batches)
    return [[_read_slot(entry) for entry in _bounded(_words(order), most)] for order in orders]


def read_columns(slots: Iterable[tuple[Action, ...]]) -> npt.NDArray[np.int32]:
    """(n_actions, 5) kind, stage, micro-batch, segment and peer of each action.

    Raises:
        InputError: if an action holds what a column cannot.
    """
    actions = [action for slot in slots for action in slot]
    if not actions:
        return np.empty((0, 5), np.int32)
    try:
        columns = np.array(actions)
    except (ValueError, OverflowError):
        columns = np.empty(0)
    if columns.dtype.kind != "i" or not _fits(columns):
        wrong = next(action for action in actions if not _is_sound(action))
        raise unlike(
            "orders",
            "made of actions with a Kind and whole numbers below 2³¹",
            repr(tuple(wrong)),
            "Action(Kind.F, 0, 0)",
        )
    return columns.astype(np.int32)


def read_waits(waits: object) -> tuple[Indices, Indices, npt.NDArray[np.float64]]:
    """The three columns of further waits.

    Raises:
        InputError: if they are not three columns of numbers.
    """
    rule, advice = "after, before and lag as columns: two of whole numbers, one of seconds", "explorer.Waits(…)"
    if not isinstance(waits, tuple) or len(waits) != 3:
        raise unlike("waits", rule, named(waits), advice)
    after, before, lag = (_column(column) for column in waits)
    if (
        not all(column.dtype.kind in "iu" or not column.size for column in (after, before))
        or lag.dtype.kind not in "iuf"
    ):
        raise unlike("waits", rule, f"{after.dtype}, {before.dtype}, {lag.dtype}", advice)
    return after.astype(np.int64), before.astype(np.int64), lag.astype(np.float64)


def named_wait(wait: Any) -> tuple[Action, Action, float]:
    """The action that must end first, the one that then may begin, and the seconds between.

    Raises:
        InputError: if it is something else.
    """
    try:
        first, then, seconds = wait
        lag = float(seconds)
    except (TypeError, ValueError):
        raise InputError(
            f'a wait is two actions and seconds, like ("1F0", "0F1", 0.5); got {str(wait)[:60]}', argument="waits"
        ) from None
    actions = [action if isinstance(action, Action) else Action.parse(str(action)) for action in (first, then)]
    return actions[0], actions[1], lag


def read_capacities(capacities: object) -> Indices:
    """The counts of items that fit between stages.

    Raises:
        InputError: if they are not a column of whole numbers.
    """
    column = _column(capacities)
    if column.dtype.kind not in "iu" and column.size:
        raise unlike(
            "capacities", "one whole number between each stage and the next", named(capacities), "numpy.array([1, 1])"
        )
    return column.astype(np.int64)


def named(value: object) -> str:
    """`value` as a message names it: numbers and texts themselves, of others what they are."""
    return shown(value) if isinstance(value, (int, float, str)) else type(value).__name__


def unlike(argument: str, rule: str, came: str, advice: str) -> InputError:
    """The refusal of something that is not what `argument` is."""
    return InputError(f"{argument} is {rule}; got {came[:_SHOWN]}; try {advice}", argument=argument)


def _column(values: object) -> npt.NDArray[Any]:
    try:
        column = np.asarray(values)
    except (ValueError, TypeError):
        column = np.empty((), object)
    return column if column.ndim == 1 else np.array([None], object)


def _fits(columns: npt.NDArray[Any]) -> bool:
    inside = bool(columns.min() >= -1 and columns.max() < _MOST)
    return inside and bool(columns[:, 0].min() >= 0 and columns[:, 0].max() < len(Kind))


def _is_sound(action: Action) -> bool:
    whole = all(isinstance(value, (int, np.integer)) and -1 <= value < _MOST for value in action)
    return whole and 0 <= action.kind < len(Kind)


def _bounded(order: Iterable[Any], most: int) -> Iterator[Any]:
    """What `order` holds; one that never ends is refused once it has given more than `most`."""
    for count, entry in enumerate(order):
        if count >= most and not isinstance(order, Sized):
            raise unlike(
                "orders",
                f"finite; an order of these micro-batches made as it is read has at most {most:,} slots",
                "more",
                "a function that ends, or a list",
            )
        yield entry


def _words(order: Order) -> Iterable[Action | Overlap | str]:
    if isinstance(order, str):
        return order.split()
    if not isinstance(order, Iterable):
        raise unlike("orders", "one order a rank, each a text or a list of actions", named(order), '"0F0 0B0"')
    return order


def _read_slot(entry: Action | Overlap | str) -> tuple[Action, ...]:
    if isinstance(entry, str):
        entry = parse_slot(entry)
    if isinstance(entry, Action):
        return (entry,)
    if isinstance(entry, (tuple, list)) and entry and all(isinstance(part, Action) for part in entry):
        return tuple(part for part in entry if isinstance(part, Action))
    raise unlike("orders", "made of Actions, Overlaps and texts", named(entry), 'explorer.Action.parse("0F0") or "0F0"')
