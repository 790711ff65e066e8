"""The comparisons that parity is made of, one a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from explorer.execute.parity_rounding import Rounding, norm

_FLOOR = 0.1  # of the largest norm: what is smaller sums terms of that size, and so has their rounding

_MOST_NAMED = 3


class Row(NamedTuple):
    """One comparison.

    Attributes:
        what: "loss", "gradient", "gradient norm", "parameter", "buffer" or "output".
        name: of the parameter or buffer.
        step: or −1.
        ours: the value, or a tensor's norm.
        theirs: the reference's.
        ratio: ours to theirs; of tensors, of ours along theirs.
        cosine: of the angle between tensors; 1 of numbers of one sign.
        difference: relative.
        allowed: what rounding may do.
    """

    what: str
    name: str
    step: int
    ours: float
    theirs: float
    ratio: float
    cosine: float
    difference: float
    allowed: float

    @property
    def ok(self) -> bool:
        """Whether it is within what rounding may do."""
        return self.difference <= self.allowed


def loss_rows(ours: Sequence[float], theirs: Sequence[float], rounding: Rounding) -> list[Row]:
    """One row for each step's loss."""
    if len(ours) != len(theirs):
        return [Row("loss", "", -1, len(ours), len(theirs), math.nan, math.nan, math.inf, 0.0)]
    scale = max((abs(loss) for loss in theirs), default=0.0)
    pairs = enumerate(zip(ours, theirs, strict=True))
    return [number_row("loss", step, a, b, rounding.of_loss(step), scale=scale) for step, (a, b) in pairs]


def number_row(what: str, step: int, ours: float, theirs: float, allowed: float, *, scale: float = 0.0) -> Row:
    """A row that compares two numbers, relative to the reference's or to `scale`."""
    difference = abs(ours - theirs) / (max(abs(theirs), scale) or 1.0)
    ratio = ours / theirs if theirs else math.nan
    cosine = math.copysign(1.0, ours * theirs)
    return Row(what, "", step, ours, theirs, ratio, cosine, _or_far(difference), allowed)


def tensor_rows(
    what: str, ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor], allowed: float, *, step: int
) -> list[Row]:
    """A row for each tensor; one that only one of the two has is infinitely far off."""
    floor = _FLOOR * max((norm(tensor) for tensor in theirs.values()), default=0.0) if what != "buffer" else 0.0
    names = [*theirs, *(name for name in ours if name not in theirs)]
    return [_tensor_row(what, name, ours.get(name), theirs.get(name), floor, allowed, step) for name in names]


def unjudged(gradients: Mapping[str, torch.Tensor], allowed: float) -> str:
    """Which gradients rounding alone could have made, in a sentence; "" for none.

    Sums of terms as large as the largest gradient may cancel to nothing; what is left of them tells nothing then.
    """
    norms = {name: norm(gradient) for name, gradient in gradients.items()}
    floor = allowed * _FLOOR * max(norms.values(), default=0.0)
    small = [name for name, size in norms.items() if 0 < size <= floor]
    if not small:
        return ""
    more = f" and {len(small) - _MOST_NAMED} others" if len(small) > _MOST_NAMED else ""
    return (
        f"gradients so small beside the largest that rounding may have made them are not judged: "
        f"{', '.join(small[:_MOST_NAMED])}{more}"
    )


def _tensor_row(
    what: str,
    name: str,
    ours: torch.Tensor | None,
    theirs: torch.Tensor | None,
    floor: float,
    allowed: float,
    step: int,
) -> Row:
    if ours is None or theirs is None or ours.shape != theirs.shape:
        own, other = (math.nan if tensor is None else norm(tensor) for tensor in (ours, theirs))
        return Row(what, name, step, own, other, math.nan, math.nan, math.inf, allowed)
    a, b = (tensor.detach().double().cpu().reshape(-1) for tensor in (ours, theirs))
    own, other, along = float(a.norm()), float(b.norm()), float(a @ b)
    difference = float((a - b).norm()) / (max(other, floor) or 1.0)
    ratio = along / other**2 if other else (1.0 if not own else math.inf)
    cosine = along / (own * other) if own and other else float(own == other)
    return Row(what, name, step, own, other, ratio, cosine, _or_far(difference), allowed)


def _or_far(difference: float) -> float:
    return difference if math.isfinite(difference) else math.inf
