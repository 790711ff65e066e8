"""What the fields of a fault may be, and what of a program it may be of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from explorer.core import Action, Kind, Program
from explorer.errors import ExplorerError, InputError, shown

_LONGEST = 3600.0  # seconds that a fault may wait


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 0.

    Raises:
        InputError: naming the argument.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(
            f"{name} is a whole number of at least 0; got {shown(value)}; try 0", argument=name, legal=(0,)
        )


def check_step_given(step: Any) -> None:
    """Refuse a step that is neither None nor a whole number.

    Raises:
        InputError: if it is so.
    """
    if step is not None:
        check_whole("step", step)


def check_number(name: str, value: Any, *, least: float = 0.0) -> None:
    """Refuse what is no number from `least` on.

    Raises:
        InputError: naming the argument.
    """
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fine or not least <= value <= _LONGEST:
        raise InputError(
            f"{name} is a number from {least:g} to {_LONGEST:g}; got {shown(value)}; try {least + 1:g}", argument=name
        )


def check_action(text: Any) -> None:
    """Refuse a text that names no F, B, I or W of a micro-batch.

    Raises:
        InputError: with how it reads.
    """
    try:
        action = Action.parse(text)
    except ExplorerError as error:
        raise InputError(str(error), argument="action") from None
    if action.kind not in (Kind.F, Kind.B, Kind.I, Kind.W) or action.micro_batch < 0 or action.segment:
        raise InputError(f"a fault is of an F, B, I or W of a micro-batch, like 2F3; got {text!r}", argument="action")


def check_rank(fault: Any, program: Program) -> None:
    """Refuse a rank that the program does not have.

    Raises:
        InputError: with the last one there is.
    """
    if fault.rank >= program.n_ranks:
        last = program.n_ranks - 1
        raise InputError(f"a rank is from 0 to {last}; got {fault.rank}; try {last}", argument="rank", legal=(last,))


def check_step(fault: Any, name: str, n_steps: int) -> None:
    """Refuse a step that the run does not have.

    Raises:
        InputError: with the last one there is.
    """
    step = getattr(fault, name)
    if step is not None and step >= n_steps:
        raise InputError(
            f"a step is from 0 to {n_steps - 1}, for the run has n_steps={n_steps}; got {name}={step}; try "
            f"{n_steps - 1}",
            argument=name,
            legal=(n_steps - 1,),
        )


def check_there(fault: Any, program: Program) -> None:
    """Refuse an action that the program does not have.

    Raises:
        InputError: with those of the stage.
    """
    action = Action.parse(fault.action)
    here = program.stage == action.stage
    if (here & (program.kind == action.kind) & (program.micro_batch == action.micro_batch)).any():
        return
    if not here.any():
        what = f"stages 0 to {program.n_stages - 1}"
    else:
        kinds = [Kind(int(kind)) for kind in np.unique(program.kind[here])]
        letters = " or ".join(kind.name for kind in kinds)
        what = f"in stage {action.stage} {letters} of micro-batches 0 to {program.n_micro_batches - 1}"
    raise InputError(f"a fault is of an action of the program; it has no {action}; it has {what}", argument="action")
