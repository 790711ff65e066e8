"""Schedules that users bring: functions, registered beside the built-in ones."""

from __future__ import annotations

import inspect
import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from explorer.core import Placement, Program, check
from explorer.core.inference import inferred
from explorer.errors import ExplorerError, InputError, ScheduleError, shown
from explorer.schedules.fixed import Fixed
from explorer.schedules.recipe import Recipe

_NAME = re.compile(r"[a-z0-9_]{1,40}")
_COUNTS = ("n_ranks", "n_micro_batches")
_LONGEST = 80  # characters of a text in the menu

Orders = Sequence[Any]  # one order a rank, as Program.from_orders takes them


class Shelf:
    """The built-in schedules, and beside them those that users put there."""

    def __init__(self, built_in: Mapping[str, Recipe]) -> None:
        self._built_in = built_in
        self._own: dict[str, Recipe] = {}
        # looked up in users' own first; read from the built-in ones on
        self.recipes: Mapping[str, Recipe] = MappingProxyType(ChainMap(self._own, dict(built_in)))

    def register(
        self,
        name: str,
        function: Callable[..., Program | Orders] | Program,
        *,
        title: str | None = None,
        needs: str = "what its function takes",
        n_chunks: int = 1,
        trains: bool = True,
    ) -> Recipe:
        """Put a schedule of your own beside the others: `explorer.schedule(name, …)` then makes it, and apps list it.

        An app lists what is registered when it opens. Registering a name again replaces it.

        Args:
            name: lower-case letters, digits and _.
            function: takes `n_ranks` and `n_micro_batches` by these names, `n_chunks` if it can have several stages a
                rank, and any options; gives a Program, or a list of one order a rank: ``["0F0 0B0", "1F0 1B0"]``.
                What it gives is checked each time. Or a Program, which is there for its own numbers alone.
            title: as a menu shows it; None for the name.
            needs: in one line, which numbers it exists for.
            n_chunks: stages a rank unless asked for otherwise.
            trains: whether it runs backward.

        Returns:
            How it is listed.

        Raises:
            InputError: if the name is none or a built-in one, or the function cannot be called so.

        Example:
            >>> import explorer as ex
            >>> def mine(n_ranks, n_micro_batches):
            ...     batches = range(n_micro_batches)
            ...     return [[f"{r}F{m}" for m in batches] + [f"{r}B{m}" for m in batches] for r in range(n_ranks)]
            >>> _ = ex.register("mine", mine, title="All forwards first")
            >>> print(ex.schedule("mine", n_ranks=2, n_micro_batches=2))
            rank 0: 0F0 0F1 0B0 0B1
            rank 1: 1F0 1F1 1B0 1B1
            >>> ex.unregister("mine")
        """
        self._check_name(name)
        if isinstance(function, Program):
            return self.register(name, Fixed(check(function)), title=title, **_facts(function))
        takes = _parameters(name, function)
        recipe = Recipe(
            name=name,
            title=_text("title", name if title is None else title),
            build=_Own(name, function, "n_chunks" in takes),
            needs=_text("needs", needs),
            n_chunks=_chunks(n_chunks, "n_chunks" in takes),
            any_chunks="n_chunks" in takes,
            options=tuple(option for option in takes if option not in (*_COUNTS, "n_chunks")),
            trains=_yes_or_no("trains", trains),
        )
        self._own[name] = recipe
        return recipe

    def unregister(self, name: str) -> None:
        """Take a schedule of your own away again; open apps list it until they are opened anew.

        Raises:
            InputError: if no schedule of your own has that name.
        """
        if not isinstance(name, str) or name not in self._own:
            there = ", ".join(self._own) or "none"
            reason = (
                "which is built in and stays" if isinstance(name, str) and name in self._built_in else "which is none"
            )
            raise InputError(
                f"only schedules of your own can be taken away; got {str(name)[:40]!r}, {reason}; yours are: {there}",
                argument="name",
            )
        del self._own[name]

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            near = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")[:40] if isinstance(name, str) else ""
            raise InputError(
                "a schedule's name is 1 to 40 lower-case letters, digits and _; "
                f"got {str(name)[:60]!r}; try {near or 'mine'!r}",
                argument="name",
            )
        if name in self._built_in:
            raise InputError(
                f"a schedule of your own has a name of its own; got {name!r}, which is built in; try 'my_{name}'"[:200],
                argument="name",
            )


class _Own:
    """A user's function called, and what it gives made a checked Program."""

    def __init__(self, name: str, function: Callable[..., Program | Orders], any_chunks: bool) -> None:
        self._name, self._function, self._any_chunks = name, function, any_chunks
        self.__doc__ = inspect.getdoc(function) or "A schedule of your own."

    def __call__(self, *, n_ranks: int, n_micro_batches: int, n_chunks: int = 1, **options: Any) -> Program:
        """The program of the function for these numbers, checked."""
        numbers = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches, **options}
        if self._any_chunks:
            numbers["n_chunks"] = n_chunks
        elif n_chunks != 1:
            raise ScheduleError(
                f"the function of {self._name} takes no n_chunks, so n_chunks is 1; got {n_chunks}; try 1",
                argument="n_chunks",
                legal=(1,),
            )
        try:
            made = self._function(**numbers)
        except ExplorerError:
            raise
        except Exception as error:
            words = ", ".join(f"{argument}={shown(value)}" for argument, value in numbers.items())
            raise ScheduleError(
                f"the function of {self._name} must give a program for every number it is asked for; got "
                f"{type(error).__name__} ({str(error)[:80]}) for {words[:120]}; try other numbers, or mend it",
                argument="schedule",
            ) from error
        return self._checked(made, n_ranks, n_micro_batches)

    def _checked(self, made: object, n_ranks: int, n_micro_batches: int) -> Program:
        if not isinstance(made, Program):
            if isinstance(made, str) or not isinstance(made, Sequence):
                raise self._other("a Program, or a list of one order a rank", type(made).__name__)
            program = Program.from_orders(self._name, Placement.looped(n_ranks), n_micro_batches, made)
            made = inferred(program, n_micro_batches=n_micro_batches)
        if (made.n_ranks, made.n_micro_batches) != (n_ranks, n_micro_batches):
            raise self._other(
                f"{n_ranks} ranks and {n_micro_batches} micro-batches, as asked for",
                f"{made.n_ranks} and {made.n_micro_batches}",
            )
        return check(made)

    def _other(self, rule: str, came: str) -> ScheduleError:
        return ScheduleError(f"the function of {self._name} must give {rule}; got {came}; mend it", argument="schedule")


def _facts(program: Program) -> dict[str, Any]:
    fixed = Fixed(program)
    return {"needs": fixed.needs, "n_chunks": fixed.n_chunks, "trains": program.has_backward}


def _parameters(name: str, function: object) -> list[str]:
    """Names of what `function` takes by keyword."""
    if not callable(function):
        raise InputError(
            f"a schedule is a function of n_ranks and n_micro_batches; got {type(function).__name__} for {name}; "
            "pass the function itself",
            argument="function",
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in another language, and silent
        return list(_COUNTS)
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters) and not set(_COUNTS) <= set(named):
        raise InputError(
            f"the function of a schedule takes n_ranks and n_micro_batches; got ({', '.join(named)[:80]}) for {name}; "
            "name its arguments so",
            argument="function",
        )
    return named


def _text(argument: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or not value.isprintable():
        raise InputError(
            f"{argument} is one line of 1 to {_LONGEST} characters; got {str(value)[:40]!r}; shorten it",
            argument=argument,
        )
    return value


def _chunks(n_chunks: object, any_chunks: bool) -> int:
    whole = isinstance(n_chunks, int) and not isinstance(n_chunks, bool)
    if not whole or n_chunks < 1 or (n_chunks > 1 and not any_chunks):  # type: ignore[operator]
        why = "" if any_chunks else " for a function that takes no n_chunks"
        raise InputError(
            f"n_chunks is a whole number of at least 1{', and 1' + why if why else ''}; got {shown(n_chunks)}; try 1",
            argument="n_chunks",
            legal=(1,),
        )
    return n_chunks  # type: ignore[return-value]


def _yes_or_no(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} is True or False; got {str(value)[:40]!r}; try True", argument=name)
    return bool(value)
