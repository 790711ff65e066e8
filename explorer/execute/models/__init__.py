"""Models that are ready to run: layers, a batch, a loss and an optimizer that fit each other."""

from __future__ import annotations

import difflib

from explorer.errors import InputError
from explorer.execute import READY_MODELS
from explorer.execute.models.ready import SIZES, ReadyModel
from explorer.schedules.recipe import check_counts

__all__ = ["SIZES", "ReadyModel", "ready_model"]


def ready_model(name: str, *, n_stages: int, n_micro_batches: int, size: str = "small") -> ReadyModel:
    """The ready model called `name`, with equal work in every stage and in every micro-batch.

    None uses batch statistics or dropout, so each must come out as the unpipelined model does.

    Args:
        name: "mlp", "conv" or "gpt".
        n_stages: stages it will be cut into; it gets layers enough.
        n_micro_batches: micro-batches its batch will be cut into; each is of the same size, whatever their number.
        size: "small" (some milliseconds a stage and micro-batch), "medium", or "large" (up to about 50 million
            parameters).

    Raises:
        InputError: if there is no such model or size, or a count is none.

    Example:
        >>> import explorer as ex
        >>> len(ex.ready_model("gpt", n_stages=4, n_micro_batches=8).layers)
        4
    """
    if name not in READY_MODELS:
        near = difflib.get_close_matches(str(name).lower(), READY_MODELS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of these"
        raise InputError(
            f"a ready model is one of {', '.join(READY_MODELS)}; got {str(name)!r}; {hint}", argument="model"
        )
    if size not in SIZES:
        raise InputError(f"a size is one of {', '.join(SIZES)}; got {size!r}; try small", argument="size")
    check_counts(n_stages=n_stages, n_micro_batches=n_micro_batches)
    from explorer.execute.models import conv, gpt, mlp

    return {"mlp": mlp.build, "conv": conv.build, "gpt": gpt.build}[name](n_stages, n_micro_batches, size)
