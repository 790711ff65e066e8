"""Why a rank is idle, in a sentence."""

from __future__ import annotations

from functools import lru_cache

from explorer.analysis.cause import Cause
from explorer.core import Kind, Program

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_STRUCTURE = {
    Cause.FILL: "the pipeline is filling",
    Cause.DRAIN: "the pipeline is draining",
    Cause.UPSTREAM: "its order has nothing to run meanwhile",
}
_OTHERS = {
    Cause.ORDER: "{} was ready, but comes later in the rank's order",
    Cause.IMBALANCE: "{} takes longer than the same work of other stages",
    Cause.STRAGGLER: "{} is on a rank that is slower than it should be",
    Cause.HICCUP: "{} took longer than its like",
    Cause.MEMORY: "{} had to wait for room, or for a wait that the program adds",
    Cause.QUEUE: "the message of {} stood behind others",
    Cause.LATENCY: "the message of {} was on its way",
    Cause.BANDWIDTH: "the bytes of {} moved",
    Cause.HOST: "all that {} needed was there, and it was not started",
}
_PUT_THERE = {
    Cause.STRAGGLER: "{} is on a rank that a fault slows down",
    Cause.HICCUP: "{} was held up by a fault",
}


def seconds_in_words(seconds: float) -> str:
    """Seconds with three digits, in the unit that fits them."""
    factor, unit = next(((f, u) for f, u in _UNITS if abs(seconds) >= f), _UNITS[-1] if seconds else _UNITS[0])
    return f"{seconds / factor:.3g} {unit}"


@lru_cache(maxsize=1 << 16)
def action_in_words(program: Program, index: int) -> str:
    """An action as ``F of micro-batch 3 on stage 1``; "an action" for −1."""
    if index < 0:
        return "an action"
    micro_batch, segment = int(program.micro_batch[index]), int(program.segment[index])
    of = f" of micro-batch {micro_batch}" if micro_batch >= 0 else ""
    part = f" (segment {segment})" if program.n_segments > 1 else ""
    return f"{Kind(int(program.kind[index])).name}{of}{part} on stage {int(program.stage[index])}"


def sentence_for(
    program: Program,
    cause: Cause,
    *,
    rank: int,
    seconds: float,
    awaited: int,
    fault: int,
    after: int,
    put_there: bool = False,
) -> str:
    """What to tell of an idle interval.

    Args:
        program: whose actions the indices name; −1 = none.
        cause: why it is there.
        rank: that is idle.
        seconds: how long.
        awaited: what the rank waits for.
        fault: the action at fault.
        after: the action that then starts.
        put_there: whether a fault that was put into the run on purpose lengthened the action at fault.
    """
    long = seconds_in_words(seconds)
    if awaited < 0:
        head = f"rank {rank} is idle for {long}"
    elif after >= 0:
        head = f"rank {rank} waits {long} for {_placed(program, awaited)}"
    else:
        head = f"rank {rank} has nothing to run for {long}, until {_placed(program, awaited)} ends the step"
    if cause in _STRUCTURE:
        chain = "" if fault in (-1, awaited) else f", which follows {_placed(program, fault)}"
        return f"{head}{chain}: {_STRUCTURE[cause]}"
    said = _PUT_THERE.get(cause, _OTHERS[cause]) if put_there else _OTHERS[cause]
    return f"{head}: {said.format(_placed(program, fault))}"


@lru_cache(maxsize=1 << 16)
def _placed(program: Program, index: int) -> str:
    """An action, with its rank where that is not its stage's number."""
    words = action_in_words(program, index)
    if index < 0 or program.rank_of_action[index] == program.stage[index]:
        return words
    return f"{words} (rank {program.rank_of_action[index]})"
