"""Compiled loops: numba where it exists, the same Python where it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_lock = threading.Lock()


def kernel(function: _Function) -> _Function:
    """Compile `function` at its first call, so that importing it costs nothing.

    Without numba (the browser build) the function runs as it stands.
    """
    compiled: Callable[..., Any] | None = None

    @wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal compiled
        if compiled is None:
            with _lock:
                compiled = compiled or _compile(function)
        return compiled(*arguments)

    return call  # type: ignore[return-value]


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        import numba
    except ImportError:
        return function
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder it may write its cache to
        compiled = numba.njit(nogil=True)(function)
    return compiled
