"""What is worked out of a trace once and kept as long as the trace is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import WeakKeyDictionary

from explorer.core import Trace

_Found = TypeVar("_Found")


def kept_with_trace(find: Callable[..., _Found]) -> Callable[..., _Found]:
    """`find(trace, *further)` with a memory: asked again of the same trace, it gives what it gave.

    Two threads may work it out at once; both results are the same, and one is kept.
    """
    kept: WeakKeyDictionary[Trace, dict[tuple[Hashable, ...], _Found]] = WeakKeyDictionary()

    @functools.wraps(find)
    def found(trace: Trace, *further: Hashable) -> _Found:
        of_trace = kept.setdefault(trace, {})
        if further not in of_trace:
            of_trace[further] = find(trace, *further)
        return of_trace[further]

    return found
