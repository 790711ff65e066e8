"""What a worker needs to have from us, as bytes: objects by value, and code as well where it cannot be imported.

A class or function of a module goes by its name, as pickle does it. One that lives in a notebook cell, within another
function, or in a module that no fresh process could find, goes with its code. Only this package's own parent process
writes such bytes, and only its own workers read them.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

from explorer.errors import ModelError

_NOT_COPIED = frozenset({"__dict__", "__weakref__", "__annotate__", "__annotate_func__", "_abc_impl"})


def to_bytes(value: Any, *, what: str) -> bytes:
    """`value` as bytes.

    Args:
        value: whatever workers need.
        what: its name as an argument, for the message.

    Raises:
        ModelError: if a part of it cannot go to another process.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        why = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"what runs in processes of its own must be sent there; the {what} cannot be: {type(error).__name__}: "
            f'{why[:200]}; put what it needs into a file and import it, or run backend="kernel"',
            argument=what,
        ) from error
    return buffer.getvalue()


def from_bytes(data: bytes) -> Any:
    """What `to_bytes` was given, in another process of ours."""
    return pickle.loads(data)  # noqa: S301  our own parent wrote it


class _Pickler(pickle.Pickler):
    """Pickle, and code by value where there is no name to find it by."""

    def reducer_override(self, value: Any) -> Any:
        """How to make `value` again; NotImplemented leaves it to pickle."""
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, types.BuiltinFunctionType) and _is_bound(value):
            return getattr, (sys.modules[value.__module__], value.__name__)
        if isinstance(value, types.FunctionType) and not _is_found(value):
            return _reduced_function(value)
        if isinstance(value, type) and not _is_found(value):
            return _reduced_class(value)
        if isinstance(value, (staticmethod, classmethod)):
            return type(value), (value.__func__,)
        if isinstance(value, property):
            return property, (value.fget, value.fset, value.fdel, value.__doc__)
        if isinstance(value, types.CellType):
            return _empty_cell, ()
        if _is_parametrized(value):
            return object.__new__, (type(value),), vars(value)  # with its class, which torch made for it alone
        return NotImplemented


def _is_found(value: Any) -> bool:
    """Whether a fresh process finds this class or function by its name."""
    module, path = getattr(value, "__module__", None), value.__qualname__
    if module == "builtins":
        return True  # some, like the type of None, have no name; pickle knows those
    if not module or module == "__main__" or "<" in path or not _is_importable(module):
        return False
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is value


def _is_bound(value: types.BuiltinFunctionType) -> bool:
    """Whether a function of a C++ module is found by its name: pickle would look at what it is bound to."""
    module: Any = sys.modules.get(value.__module__ or "")
    plain = value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    return not plain and module is not None and getattr(module, value.__name__, None) is value


def _is_parametrized(value: Any) -> bool:
    """Whether it is a module whose class torch.nn.utils.parametrize has made, where it also forbids to pickle it."""
    modules = getattr(value, "__dict__", {}).get("_modules")
    return isinstance(modules, dict) and "parametrizations" in modules and not _is_found(type(value))


@cache
def _is_importable(module: str) -> bool:
    """Whether a fresh process that looks in the same places finds the same module."""
    name = module.partition(".")[0]
    ours = sys.modules.get(name)
    if ours is None or name in sys.stdlib_module_names:
        return True
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, None)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            return spec.origin == getattr(ours, "__file__", None)
    return False


def _reduced_function(function: types.FunctionType) -> Any:
    names = set(_global_names(function.__code__))
    used = {name: value for name, value in function.__globals__.items() if name in names}
    state = {
        "globals": used,
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "attributes": dict(vars(function)),
        "module": function.__module__,
        "qualname": function.__qualname__,
        "cells": [_contents(cell) for cell in function.__closure__ or ()],
    }
    code = marshal.dumps(function.__code__)
    return _bare_function, (code, function.__name__, function.__closure__), state, None, None, _fill_function


def _global_names(code: types.CodeType) -> Iterator[str]:
    """What the code, or code within it, may look up by name."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _bare_function(code: bytes, name: str, closure: tuple[types.CellType, ...] | None) -> types.FunctionType:
    return types.FunctionType(marshal.loads(code), {"__builtins__": __builtins__}, name, None, closure)


def _fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    function.__globals__.update(state["globals"], __name__=state["module"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__module__, function.__qualname__ = state["module"], state["qualname"]
    vars(function).update(state["attributes"])
    for cell, content in zip(function.__closure__ or (), state["cells"], strict=True):
        if content:
            cell.cell_contents = content[0]


def _reduced_class(cls: type) -> Any:
    members = {name: value for name, value in vars(cls).items() if name not in _NOT_COPIED}
    slots = [name for name, value in members.items() if isinstance(value, types.MemberDescriptorType)]
    if slots:
        raise pickle.PicklingError(f"the class {cls.__qualname__} has __slots__ and is in no file to import it from")
    return _bare_class, (type(cls), cls.__name__, cls.__bases__), members, None, None, _fill_class


def _bare_class(meta: type, name: str, bases: tuple[type, ...]) -> type:
    return types.new_class(name, bases, {"metaclass": meta})


def _fill_class(cls: type, members: dict[str, Any]) -> None:
    for name, value in members.items():
        setattr(cls, name, value)


def _empty_cell() -> types.CellType:
    """A cell to be filled by the functions that share it: it may hold one of them."""
    return types.CellType()


def _contents(cell: types.CellType) -> tuple[Any, ...]:
    """What a cell holds; nothing if it is still empty."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()
