"""A stage's backward in two parts, I and W, where torch's own leaves something out or fails.

Torch's I goes from all outputs to the inputs, and its W from where that has passed on to the weights. What it does not
pass on its way has no gradient then: all of a stage behind frozen ones, or an output made of weights alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from explorer.execute.autograd_graph import nodes_behind

Unled = Mapping[int, GradientEdge]


def unled(outputs: Sequence[Any], inputs: Sequence[Any]) -> Unled:
    """Place → edge of each of the `outputs` that has a gradient, and not because of any of the `inputs`."""
    ends = {get_gradient_edge(one).node for one in inputs if _learns(one)}
    learning = {place: get_gradient_edge(one) for place, one in enumerate(outputs) if _learns(one)}
    return {place: edge for place, edge in learning.items() if ends.isdisjoint(nodes_behind(edge.node))}


def backward_of(found: Unled, gradients: Sequence[torch.Tensor | None] | None, weights: Sequence[torch.Tensor]) -> None:
    """Add to the gradients of `weights` what comes from these outputs, whose own are `gradients`; None: of a loss."""
    given = {place: None if gradients is None else gradients[place] for place in found}
    known = [place for place in found if gradients is None or given[place] is not None]
    learning = [weight for weight in weights if weight.requires_grad]
    if not known or not learning:
        return
    of = [found[place] for place in known]
    added = torch.autograd.grad(of, learning, [given[place] for place in known], retain_graph=True, allow_unused=True)
    for weight, gradient in zip(learning, added, strict=True):
        if gradient is not None:
            weight.grad = gradient if weight.grad is None else weight.grad + gradient


def _learns(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


class _Alias(torch.autograd.Function):
    """The same numbers in the same place, and for autograd no view."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


def detachable(value: Any) -> Any:
    """`value`, or an alias of it where it is a view, which cannot be detached in place."""
    is_view = isinstance(value, torch.Tensor) and value.requires_grad and value._is_view()  # noqa: SLF001
    return _Alias.apply(value) if is_view else value  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def counted_once(groups: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Within it, what I has kept for an operation is not led on to an earlier one, which has its own.

    Args:
        groups: of weights, with the operations that use them and the gradients that I has kept for each.
    """
    with contextlib.ExitStack() as hooks:
        for group in groups:
            used_by = group.get("intermediates") or ()
            for operation, kept in zip(used_by, group.get("grads") or (), strict=False):
                if len(used_by) > 1:
                    hooks.callback(operation.register_prehook(lambda _, kept=kept: kept).remove)
        yield
