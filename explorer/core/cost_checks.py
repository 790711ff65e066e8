"""Whether seconds and bytes are ones: numbers, none negative, none beyond what sums can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.core.action import Action
from explorer.core.links import check_links
from explorer.errors import CostError, InputError

if TYPE_CHECKING:
    from explorer.core.costs import Costs

_NO_AMOUNTS = ("recompute_for", "seed", "delays", "message_delays", "links", "sharing")
_MOST_BYTES = 1e15  # what a rank holds of them is still a whole number of 64 bits
_LARGEST = 1e100  # so large that sums of it stay finite


def check_costs(costs: Costs) -> None:
    """Refuse costs that cannot be.

    Raises:
        CostError: naming the attribute.
    """
    _check_choices(costs)
    for one in fields(costs):
        value = getattr(costs, one.name)
        if one.name not in _NO_AMOUNTS and (value is not None or one.default is not None):
            _check_amount(one.name, value)


def _check_choices(costs: Costs) -> None:
    check_links(costs.links, costs.sharing)
    if costs.recompute_for not in ("inputs", "both"):
        raise CostError(
            f'recompute_for is "inputs" or "both"; got {costs.recompute_for!r}; try "inputs"', argument="recompute_for"
        )
    if not isinstance(costs.seed, (int, np.integer)) or isinstance(costs.seed, bool) or costs.seed < 0:
        raise CostError(f"seed is a whole number of at least 0; got {costs.seed!r}; try 0", argument="seed")
    for name in ("delays", "message_delays"):
        _check_delays(name, getattr(costs, name))


def _check_delays(name: str, delays: Any) -> None:
    if not isinstance(delays, Mapping):
        raise CostError(f'{name} are action → seconds, like {{"2F3": 0.5}}; got {delays!r}', argument=name)
    for action, seconds in delays.items():
        try:
            Action.parse(str(action))
        except InputError as error:
            raise CostError(f"{error}; in {name}", argument=name) from None
        _check_amount(name, seconds)


def _check_amount(name: str, value: float | npt.ArrayLike | None) -> None:
    try:
        given = np.asarray(np.nan if value is None else value)
        array = given.astype(np.float64, casting="same_kind") if given.dtype != object else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CostError(
            f"{name} is a number or an array of numbers; got {str(value)[:40]!r}; try 1.0", argument=name
        ) from None
    if name in ("fixed", "jitter", "delays", "message_delays") and array.ndim:
        raise CostError(f"{name} is one number, not several; got shape {array.shape}; try 0", argument=name)
    positive, unlimited = name in ("bandwidth", "time_factor", "micro_batch_factor"), name == "bandwidth"
    largest = _MOST_BYTES if name.endswith("_bytes") else _LARGEST
    fine = ((array > 0) if positive else (array >= 0)) & ((array <= largest) | (unlimited & np.isposinf(array)))
    if not fine.all():
        worst = "None" if value is None else f"{array.reshape(-1)[~fine.reshape(-1)][0]:g}"
        rule = f"{'above 0' if positive else '0 or more'}, at most {largest:g}{' or infinite' if unlimited else ''}"
        raise CostError(f"{name} is {rule}; got {worst}; try {1 if positive else 0}", argument=name)


def shape_error(name: str, value: npt.NDArray[np.float64], wanted: str) -> CostError:
    """What to say of an array of another shape than `wanted`."""
    return CostError(f"{name} is {wanted}; got shape {value.shape}", argument=name)
