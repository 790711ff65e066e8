"""Compiled loops: numba where it exists and is worth its wait, the same Python otherwise."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SMALL = 2048  # elements of the longest array; Python is through with them before numba is even imported
_lock = threading.Lock()


def kernel(function: _Function) -> _Function:
    """Compile `function` when it is first worth it, so that importing it costs nothing.

    Numba takes about a second to load, so small inputs run in Python until something else has loaded it. Without
    numba (the browser build) all do.
    """
    compiled: Callable[..., Any] | None = None

    @wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal compiled
        if compiled is None:
            if "numba" not in sys.modules and _longest(arguments) <= _SMALL:
                return function(*arguments)
            with _lock:
                compiled = compiled or _compile(function)
        return compiled(*arguments)

    return call  # type: ignore[return-value]


def part(function: _Function) -> _Function:
    """Mark a plain function that kernels of its module call, so that it is compiled with them."""
    function.is_kernel_part = True  # type: ignore[attr-defined]
    return function


def _longest(arguments: tuple[Any, ...]) -> int:
    return max((argument.size for argument in arguments if isinstance(argument, np.ndarray)), default=0)


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        import numba
        import numba.extending
    except ImportError:
        return function
    _register_parts(function, numba.extending.register_jitable)
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder it may write its cache to
        compiled = numba.njit(nogil=True)(function)
    return compiled


def _register_parts(function: Callable[..., Any], register: Callable[..., Any]) -> None:
    """Make every part that `function` calls, and those they call, known to numba, each once."""
    for name in function.__code__.co_names:
        called: Any = function.__globals__.get(name)
        if getattr(called, "is_kernel_part", False):
            called.is_kernel_part = False  # numba knows it from now on
            register(called)
            _register_parts(called, register)
