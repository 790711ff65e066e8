"""Faults by their words, together for a run, and as costs for a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from types import MappingProxyType
from typing import Any

from explorer.core import Costs, Program
from explorer.errors import InputError, shown
from explorer.execute.faults import DelayAction, DelayMessage, FailAction, Fault, KillRank, SlowRank, fields_of

_MOST_STEPS = 2**31

FAULTS: Mapping[str, type[Fault]] = MappingProxyType(
    {kind.word: kind for kind in (SlowRank, DelayAction, DelayMessage, FailAction, KillRank)}
)


def parse_fault(text: str) -> Fault:
    """The fault that `text` names, as "slow rank=2 factor=3".

    Raises:
        InputError: if it names none, with what could be.
    """
    word, *pairs = text.split() or [""]
    if word not in FAULTS:
        raise InputError(f'a fault is one of {", ".join(FAULTS)}; got {shown(word)}; try "slow rank=0 factor=2"')
    kind = FAULTS[word]
    known = [one.name for one in fields_of(kind)]
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or name not in known or name in values:
            raise InputError(f"{word} takes {_usage(kind)}, each once; got {shown(pair)}")
        values[name] = _read(name, value)
    missing = [name for name in _required(kind) if name not in values]
    if missing:
        raise InputError(f"{word} takes {_usage(kind)}; {missing[0]} is missing in {shown(text)}")
    return kind(**values)


def check_faults(faults: Any, program: Program, n_steps: int, backend: str) -> tuple[Fault, ...]:
    """The faults, if a run can have them.

    Raises:
        InputError: if one is none, or cannot be in this run.
    """
    wrong = [one for one in faults if not isinstance(one, Fault)] if isinstance(faults, (list, tuple)) else [faults]
    if wrong:
        raise InputError(
            f"faults is a list of faults; got {shown(wrong[0])}; try faults=[SlowRank(rank=0, factor=2.0)]",
            argument="faults",
        )
    for fault in faults:
        try:
            fault.check(program, n_steps, backend)
        except InputError as error:
            raise InputError(f"{error}; in the fault {str(fault)!r}", argument="faults", legal=error.legal) from None
    return tuple(faults)


def faulty_costs(program: Program, costs: Costs, faults: Sequence[Fault], *, step: int = 0) -> Costs:
    """What the actions and messages of a step cost with these faults, for a prediction beside the run.

    Args:
        program: that runs.
        costs: without faults.
        faults: of the run.
        step: whose costs.

    Raises:
        InputError: if a fault cannot be in this program, or ends the run, so that there is nothing to predict.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("gpipe", n_ranks=2, n_micro_batches=1)
        >>> costs = ex.faulty_costs(program, ex.Costs(), [ex.SlowRank(rank=1, factor=2.0)])
        >>> ex.simulate(program, costs).makespan  # 6 without it
        9.0
    """
    for fault in check_faults(faults, program, _MOST_STEPS, "processes"):
        if fault.is_in(step):
            if fault.ends_run:
                raise InputError(
                    f"a run that ends has no costs; {str(fault)!r} ends it; leave it out", argument="faults"
                )
            costs = fault.expected(costs, program)
    return costs


def _required(kind: type[Fault]) -> list[str]:
    return [one.name for one in fields_of(kind) if one.default is MISSING]


def _usage(kind: type[Fault]) -> str:
    required = _required(kind)
    return " ".join(f"{one.name}=…" if one.name in required else f"[{one.name}=…]" for one in fields_of(kind))


def _read(name: str, text: str) -> Any:
    if name == "action":
        return text
    try:
        return float(text) if name in ("factor", "seconds") else int(text)
    except ValueError:
        what = "a number" if name in ("factor", "seconds") else "a whole number"
        raise InputError(f"{name} is {what}; got {shown(text)}; try {name}=2", argument=name) from None
