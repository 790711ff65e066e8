"""The costs of a trace as a rank's share of the model, at which other schedules can be compared with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Program, RankShare, Trace
from explorer.widgets.settings import Settings

Floats = npt.NDArray[np.float64]

_SECONDS = ("forward", "backward", "backward_input", "backward_weight", "overlap", "recompute", "optimizer")
_BYTES = ("activation_bytes", "weight_gradient_bytes", "recompute_bytes", "parameter_bytes", "optimizer_bytes")


def measured_share(trace: Trace, settings: Settings, predicted: Trace | None) -> RankShare | None:
    """What each rank had to do in the run that is shown, from what was predicted of it; None where no run is shown.

    What a run does not tell, such as how a backward divides that was never divided, is as the controls say.

    Args:
        trace: that is shown.
        settings: of the controls.
        predicted: the trace behind it, with the run's typical costs; the same where nothing was measured.
    """
    if predicted is None or predicted is trace or predicted.costs is None:
        return None
    return share_of(predicted.costs, predicted.program, weight_share=settings.weight_share)


def share_of(costs: Costs, program: Program, *, weight_share: float = 0.5) -> RankShare:
    """What each rank of `program` has to do under its stages' `costs`, whatever the schedule.

    A rank's share is the sum over its stages, of all micro-batches the mean; a message is as large as their largest.

    Args:
        costs: of the stages of `program`.
        program: that they are of.
        weight_share: of a backward, what W takes where the costs do not say.
    """
    amounts: dict[str, Any] = {
        name: _by_rank(getattr(costs, name), program)
        for name in (*_SECONDS, *_BYTES)
        if getattr(costs, name) is not None
    }
    if "backward_weight" not in amounts and "backward_input" not in amounts:
        backward = amounts.get("backward", 2 * amounts["forward"])
        amounts["backward_weight"] = backward * weight_share
    if program.n_segments > 1:
        amounts = {
            name: value * (program.n_segments if name in _SECONDS[:-1] else 1) for name, value in amounts.items()
        }
    message = np.asarray(costs.message_bytes, float) * program.n_segments
    return RankShare(replace(costs, **amounts, message_bytes=float(message.max(initial=0.0))))


def _by_rank(value: Any, program: Program) -> Floats:
    """(n_ranks,) the sum over each rank's stages."""
    amount = np.asarray(value, float)
    of_stage = amount.mean(axis=tuple(range(1, amount.ndim))) if amount.ndim else amount
    of_stage = np.broadcast_to(of_stage, program.n_stages)
    return np.asarray(np.bincount(program.placement.routes[0], of_stage, program.n_ranks), float)
