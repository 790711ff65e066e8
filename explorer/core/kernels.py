"""Compiled loops: numba where it exists and is worth its wait, the same Python otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SMALL = 2048  # elements of the longest array; Python is through with them before numba is even imported
_PATIENCE = 1.0  # seconds in Python, after which a compiler is worth its wait
_lock = threading.Lock()


def kernel(function: _Function) -> _Function:
    """Compile `function` when it is first worth it, so that importing it costs nothing.

    Numba takes about a second to load and up to ten to compile a search, once for all time where its cache is kept. So
    small inputs run in Python until they have taken a second in all. Without numba (the browser build) all do.
    """
    compiled: Callable[..., Any] | None = None
    spent = 0.0

    @wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal compiled, spent
        if compiled is None:
            if spent <= _PATIENCE and _longest(arguments) <= _SMALL:
                begin = time.perf_counter()
                result = function(*arguments)
                spent += time.perf_counter() - begin
                return result
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
