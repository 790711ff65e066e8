"""Whether the state of an optimizer in a checkpoint is one that its optimizer can go on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from explorer.errors import InputError

# of each parameter, and as large as it; what optimizers that are not torch's keep under other names is theirs to check
_LIKE_ITS_PARAMETER = frozenset(
    ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg", "exp_inf", "sum")
)
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_NEEDED = {
    **dict.fromkeys(("Adam", "AdamW", "NAdam", "RAdam"), _MOMENTS),
    "RMSprop": ("step", "square_avg"),
    "Adagrad": ("step", "sum"),
}


def check_optimizer(
    path: Path, optimizer: Mapping[str, Mapping[str, Any]], model: Mapping[str, torch.Tensor], optimizer_type: str
) -> None:
    """Refuse at once what torch would stumble over in the middle of a step.

    Raises:
        InputError: naming the file, the parameter and what to do.
    """
    for name, values in optimizer.items():
        if name not in model:
            raise _damaged(path, f"the state of {name[:60]!r}, which is no parameter of its model")
        missing = next((key for key in _NEEDED.get(optimizer_type, ()) if key not in values), None)
        if missing is not None:
            raise _damaged(path, f"no {missing} of {name[:60]!r}, which {optimizer_type} needs")
        for key, value in values.items():
            if not _fits(key, value, model[name]):
                came = f"shape {tuple(value.shape)}, {value.dtype}" if isinstance(value, torch.Tensor) else "a number"
                raise _damaged(path, f"{came} for {key} of {name[:60]!r}, whose own is {tuple(model[name].shape)}")


def _fits(key: str, value: Any, parameter: torch.Tensor) -> bool:
    if key == "step":
        return not isinstance(value, torch.Tensor) or value.numel() == 1
    if key in _LIKE_ITS_PARAMETER:
        return isinstance(value, torch.Tensor) and value.shape == parameter.shape and value.is_floating_point()
    return True


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        f"a checkpoint holds what its optimizer keeps of each parameter; {path} has {what}: the file is damaged; "
        "resume from the one before",
        argument="resume",
    )
