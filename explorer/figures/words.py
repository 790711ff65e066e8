"""What figures say: the title, honest about its clock; and checks and escapes for what comes from outside."""

from __future__ import annotations

import html
from collections.abc import Mapping
from types import MappingProxyType

from explorer.core import Trace
from explorer.errors import InputError

CLOCKS: Mapping[str, str] = MappingProxyType(
    {
        "simulated": "simulated",
        "virtual": "virtual ranks: measured operations, modelled links",
        "real": "real clocks",
    }
)
_LONGEST_NAME = 80


def check_trace(value: object, *, function: str, argument: str = "trace") -> Trace:
    """`value`, if it is a Trace.

    Raises:
        InputError: if it is anything else; it says how to come by a Trace.
    """
    if isinstance(value, Trace):
        return value
    came = type(value).__name__
    advice = "give run.trace" if hasattr(value, "trace") else "make one with explorer.simulate or explorer.execute"
    raise InputError(f"{function} draws a Trace; got {came} as {argument}; {advice}", argument=argument)


def check_predicted(value: object, trace: Trace, *, function: str) -> Trace | None:
    """`value`, if it is None or a Trace of as many ranks as `trace`.

    Raises:
        InputError: if it is anything else.
    """
    if value is None:
        return None
    predicted = check_trace(value, function=function, argument="predicted")
    if predicted.n_ranks != trace.n_ranks:
        raise InputError(
            f"{function} draws a prediction behind a trace of as many ranks; got {predicted.n_ranks} behind "
            f"{trace.n_ranks}; simulate the same program",
            argument="predicted",
        )
    return predicted


def plain(text: str) -> str:
    """`text` so that plotly, which reads some HTML, shows it as it stands."""
    short = text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
    return html.escape(short)


def title_of(trace: Trace) -> str:
    """Schedule, size and clock, escaped."""
    program = trace.program
    chunks = f" × {program.n_stages / program.n_ranks:g} stages" if program.n_stages != program.n_ranks else ""
    size = f"{_count(program.n_ranks, 'rank')}{chunks}, {_count(program.n_micro_batches, 'micro-batch')}"
    return f"{plain(program.name)} · {size} · {plain(CLOCKS.get(trace.clock, trace.clock))}"


def _count(n: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{n} {what}{plural if n != 1 else ''}"
