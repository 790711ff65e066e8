"""Which values each setting may begin with."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from explorer.core import MESSAGE_RULES, LinkSharing
from explorer.errors import InputError, shown
from explorer.execute import READY_MODELS
from explorer.schedules import REGISTRY
from explorer.widgets.settings import Settings

_SIZES = ("activation_bytes", "recompute_bytes", "parameter_bytes", "memory_limit")
_MOST_BYTES = 1e15  # as in Costs
_LEAST = {"forward": 1e-9, "bandwidth": 1e-9, "slow_factor": 1.0, "long_factor": 1.0}  # of numbers; of others 0
_MOST = {"kept_share": 1.0, "weight_share": 1.0}  # of others _LARGEST
_LARGEST = 1e15
_COUNTS = ("n_ranks", "n_micro_batches", "n_steps", "n_chunks")  # how many of these there may be, the schedule says
_MOST_WHOLE = 65_536  # a control stands at each of its whole numbers
_MOST_STEPS = 100_000
_MOST_SEED = 2**32 - 1  # the browser's numbers are whole up to 2^53


def read_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of settings that there are, each one that its control can stand at.

    Raises:
        InputError: if one is of another kind, out of its range, or none of its choices.
    """
    known = {field.name: field.default for field in fields(Settings)}
    read = {name: _value(name, value, known[name]) for name, value in given.items()}
    settings = Settings(**read)
    for name, words in _choices().items():
        check_choice(name, getattr(settings, name), words)
    for name, (least, most) in _ranges(settings).items():
        _check_range(name, getattr(settings, name), least, most)
    return read


def check_choice(name: str, value: object, known: list[str]) -> None:
    """Refuse what is none of `known`.

    Raises:
        InputError: naming them, and the nearest.
    """
    if value not in known:
        near = nearest(value, known)
        raise InputError(
            f"{name} is one of {', '.join(known)}; got {shown(value)}; {near}", argument=name, legal=tuple(known)
        )


def nearest(value: object, known: list[str]) -> str:
    """Which of `known` may have been meant."""
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else "choose one of these"


def _choices() -> dict[str, list[str]]:
    """Name of a setting → the words that it may be."""
    return {
        "model": [*READY_MODELS, "own"],
        "schedule": list(REGISTRY),
        "sharing": list(get_args(LinkSharing)),
        "messages": ["free", *MESSAGE_RULES],
        "recompute_for": ["inputs", "both"],
    }


def _ranges(settings: Settings) -> dict[str, tuple[int, int]]:
    """Name of a setting → the least and most that it may be, in whole numbers."""
    return {
        "n_steps": (1, _MOST_STEPS),
        "warm_up": (-1, _MOST_WHOLE),
        "seed": (0, _MOST_SEED),
        "slow_rank": (0, settings.n_ranks - 1),
        "long_micro_batch": (0, settings.n_micro_batches - 1),
        "ranks_per_node": (0, _MOST_WHOLE),
    }


def _value(name: str, value: Any, usual: Any) -> Any:
    """`value` as the setting `name` has it, where it is of that kind."""
    if name in _SIZES:
        return _size(name, value)
    if name in _COUNTS:
        return _count(name, value)
    if name == "moves":
        return _moves(value)
    if isinstance(usual, float):
        return _real(name, value, usual)
    if isinstance(usual, int):
        return _whole(name, value, usual)
    if not isinstance(value, str):
        raise InputError(f"{name} is a text; got {shown(value)}; try {usual!r}", argument=name)
    return value


def _size(name: str, value: Any) -> float:
    """`value`, if it is bytes; no limit may also be None."""
    if value is None and name == "memory_limit":
        return 0.0
    if not _is_number(value) or not 0 <= value <= _MOST_BYTES:
        raise InputError(f"{name} is bytes, from 0 to {_MOST_BYTES:g}; got {shown(value)}; try 80e9", argument=name)
    return float(value)


def _count(name: str, value: Any) -> int | None:
    """`value`, if it counts something; the schedule's own number of chunks is None."""
    if value is None and name == "n_chunks":
        return None
    if not _is_whole(value) or value < 1:
        raise InputError(
            f"{name} is a whole number of at least 1; got {shown(value)}; try 1", argument=name, legal=(1,)
        )
    return int(value)


def _moves(value: Any) -> tuple[tuple[str, int], ...]:
    """`value`, if it is pairs of action and slot; whether there are such, the program says."""
    pairs: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    for pair in pairs:
        fits = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not fits or not isinstance(pair[0], str) or not _is_whole(pair[1]):
            raise InputError(
                f'moves are pairs of an action and its slot, in a list; got {shown(value)}; try [("0F2", 1)]',
                argument="moves",
            )
    return tuple((action, int(slot)) for action, slot in pairs)


def _real(name: str, value: Any, usual: float) -> float:
    """`value`, if it is a number that a control can stand at."""
    least, most = _LEAST.get(name, 0.0), _MOST.get(name, _LARGEST)
    is_endless = name == "bandwidth" and _is_number(value) and value == math.inf
    if not is_endless and (not _is_number(value) or not least <= value <= most):
        raise InputError(
            f"{name} is a number from {least:g} to {most:g}; got {shown(value)}; try {usual:g}",
            argument=name,
        )
    return float(value)


def _whole(name: str, value: Any, usual: int) -> int:
    if not _is_whole(value):
        raise InputError(f"{name} is a whole number; got {shown(value)}; try {usual!r}", argument=name)
    return int(value)


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        near = min(max(value, least), most)
        raise InputError(
            f"{name} is a whole number from {least} to {most}; got {shown(value)}; try {near}",
            argument=name,
            legal=(near,),
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
