"""The graph that autograd keeps of a computation, gone through from its result."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any


def nodes_behind(node: Any, *, stop: Collection[Any] = ()) -> Iterator[Any]:
    """`node` and all that its value was computed from, each once.

    Args:
        node: as a tensor's `grad_fn` is one; None has nothing behind it.
        stop: nodes that are not gone to, nor past.
    """
    seen, ahead = {None, *stop}, [node]
    while ahead:
        one = ahead.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        ahead += [before for before, _ in one.next_functions]
