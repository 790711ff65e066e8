"""What ranks tell each other over their group: JSON and tensors' bytes, from which nothing but values can come.

What goes to other machines is not pickled: whoever reads a pickle runs what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch

from explorer.core import Action, Category, Kind
from explorer.errors import RunError
from explorer.execute._torch_ranks import Parcel
from explorer.execute.checkpoint_folder import Saving, Start
from explorer.execute.checkpoint_state import State
from explorer.execute.events import Memory, SlotEnd, Updated
from explorer.execute.fault_words import parse_fault
from explorer.execute.faults import Fault, Injected
from explorer.execute.parity import Parity
from explorer.execute.parity_rows import Row
from explorer.execute.tasks import Between, Done

_OF_A_STEP = (Action, Injected, Memory, Parcel, SlotEnd, Updated)
_OF_A_RUN = (Between, Done, Parity, Row, Saving, Start, State)
_KINDS: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in (*_OF_A_STEP, *_OF_A_RUN)}
_NAMED: Mapping[str, Callable[[Any], Any]] = {
    "Kind": Kind,
    "Category": Category,
    "fault": parse_fault,
    "path": Path,
}
_DTYPES = {str(dtype): dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}


def packed(value: Any) -> tuple[bytes, list[torch.Tensor]]:
    """Any of our values as JSON, and the tensors in it.

    Raises:
        RunError: if a value is none of ours.
    """
    tensors: list[torch.Tensor] = []
    return json.dumps(_packed(value, tensors), separators=(",", ":")).encode(), tensors


def unpacked(data: bytes, read: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The value again.

    Args:
        data: the JSON.
        read: called with an empty tensor for each there is, in their order; gives it filled.
    """
    return _unpacked(json.loads(data), read)


def _packed(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().cpu().contiguous())
        return {"tensor": [str(value.dtype), list(value.shape)]}
    if isinstance(value, Fault):
        return {"fault": str(value)}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, IntEnum):
        return {type(value).__name__: int(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ in _KINDS:
        names = [one.name for one in fields(value)] if is_dataclass(value) else value._fields
        return {type(value).__name__: [_packed(getattr(value, name), tensors) for name in names]}
    if isinstance(value, Mapping):
        return {"pairs": [[_packed(one, tensors) for one in pair] for pair in value.items()]}
    if isinstance(value, (list, tuple)):
        return (
            {type(value).__name__: [_packed(one, tensors) for one in value]}
            if type(value) is tuple
            else [_packed(one, tensors) for one in value]
        )
    raise RunError(f"ranks tell each other numbers, texts and tensors; got {type(value).__name__}; leave it out")


def _unpacked(value: Any, read: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpacked(one, read) for one in value]
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    if name == "tensor":
        return read(torch.empty(inner[1], dtype=_DTYPES[inner[0]]))
    if name in _NAMED:
        return _NAMED[name](inner)
    parts = [_unpacked(one, read) for one in inner]
    if name == "pairs":
        return dict(parts)
    return tuple(parts) if name == "tuple" else _KINDS[name](*parts)
