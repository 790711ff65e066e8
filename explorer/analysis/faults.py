"""What a trace's marks tell of faults that were put there: which ranks were slowed down, which actions held up."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from explorer.core import Action, Mark, Program
from explorer.errors import ExplorerError

_NUMBER = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
# a fault's words, as `explorer.execute.faults` writes them into a mark; what else marks say is of no concern here
_SLOW = re.compile(rf"slow rank=(\d+) factor={_NUMBER}(?: .*)?")
_LATE = re.compile(rf"delay action=(\S+) seconds={_NUMBER}(?: .*)?")
_NOTHING: Mapping[int, float] = MappingProxyType({})


class Faults(NamedTuple):
    """The faults of one step that lengthen what its ranks compute.

    Attributes:
        slow: rank → how many times as long everything on it takes.
        late: index of an action → seconds that it takes besides.
    """

    slow: Mapping[int, float] = _NOTHING
    late: Mapping[int, float] = _NOTHING

    def are_of(self, program: Program, action: int) -> bool:
        """Whether one of them lengthens this action of `program`, which runs in the same step."""
        return action in self.late or int(program.rank_of_action[action]) in self.slow


def faults_of(marks: Iterable[Mark], program: Program, *, step: int) -> Faults:
    """The faults that `marks` tell of in one step; two of the same rank or action add up to one.

    Args:
        marks: of the trace; what is no fault, or of no rank or action of the program, is left out.
        program: that ran.
        step: number of the step.
    """
    slow: dict[int, float] = {}
    late: dict[int, float] = {}
    for mark in marks:
        if mark.step != step:
            continue
        if found := _SLOW.fullmatch(mark.text):
            rank, factor = int(found[1]), float(found[2])
            if rank < program.n_ranks and factor > 1 and math.isfinite(factor):
                slow[rank] = slow.get(rank, 1.0) * factor
        elif found := _LATE.fullmatch(mark.text):
            action, seconds = _index_of(found[1], program), float(found[2])
            if action >= 0 and seconds > 0 and math.isfinite(seconds):
                late[action] = late.get(action, 0.0) + seconds
    return Faults(slow, late)


def _index_of(text: str, program: Program) -> int:
    """The action that `text` names; −1 if there is none such."""
    try:
        action = Action.parse(text)
    except ExplorerError:
        return -1
    there = (program.kind == action.kind) & (program.stage == action.stage)
    there &= (program.micro_batch == action.micro_batch) & (program.segment == action.segment)
    rows = np.flatnonzero(there)
    return int(rows[0]) if len(rows) else -1
