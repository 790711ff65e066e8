"""Gradients that come in parts: of tied weights from several stages, of one weight from several ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from explorer.errors import InputError
from explorer.execute.parity_rows import Row, tensor_rows

Named = Mapping[str, torch.Tensor]
Parts = dict[str, list[tuple[str, torch.Tensor]]]


def gather(gradients: Named | Sequence[Named] | None) -> Parts:
    """Name → what there is of its gradient: (where from, tensor), from one mapping or from one of each rank.

    Raises:
        InputError: if something else is given.
    """
    mappings = list(gradients) if isinstance(gradients, (list, tuple)) else [{} if gradients is None else gradients]
    found: Parts = {}
    for rank, mapping in enumerate(mappings):
        if not isinstance(mapping, Mapping):
            raise InputError(
                f"gradients are name → tensor, or a list of such mappings; got {type(mapping).__name__}; give "
                "{name: p.grad for name, p in module.named_parameters()}",
                argument="gradients",
            )
        for name, value in mapping.items():
            if value is None:
                continue
            if not isinstance(value, torch.Tensor):
                raise InputError(
                    f"gradients are tensors; got {type(value).__name__} for {name}; give p.grad", argument="gradients"
                )
            where = f"{name} of rank {rank}" if len(mappings) > 1 else name
            found.setdefault(name, []).append((where, value))
    return found


def ties(model: Any) -> dict[str, str]:
    """Each further name of a parameter that has several → its first name."""
    whole = model if isinstance(model, nn.Module) else nn.Sequential(*model)
    first: dict[int, str] = {}
    further: dict[str, str] = {}
    for name, parameter in whole.named_parameters(remove_duplicate=False):
        known = first.setdefault(id(parameter), name)
        if known != name:
            further[name] = known
    return further


def tied_reason(
    whole: Row, parts: Sequence[tuple[str, torch.Tensor]], theirs: torch.Tensor, allowed: float
) -> tuple[Row, str]:
    """The row of a gradient that came in parts, and what has to be done with them.

    Args:
        whole: the row of their sum.
        parts: where from, and each.
        theirs: the reference's.
        allowed: what rounding may do.
    """
    rows = [tensor_rows("gradient", {whole.name: part}, {whole.name: theirs}, allowed, step=0)[0] for _, part in parts]
    if all(row.ok for row in rows):
        return rows[0], ""
    worst = max(rows, key=lambda row: row.difference)
    places = " and ".join(where for where, _ in parts)
    if whole.ok:
        return worst, f"tied tensor: {places} needs a gradient sum; their sum is the reference's, each alone is not"
    mean = torch.stack([part for _, part in parts]).mean(0)
    if tensor_rows("gradient", {"": mean}, {"": theirs}, allowed, step=0)[0].ok:
        return worst, f"{places} need an average; their mean is the reference's gradient, each alone is not"
    return worst, f"{places} are parts of one gradient, and neither their sum nor their mean is the reference's"
