"""Idle intervals and their causes as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.cause import Cause
from explorer.analysis.faults import Faults
from explorer.analysis.sentences import sentence_for
from explorer.core import Kind, Program

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

_KIND_NAMES = tuple(kind.name for kind in Kind)


@dataclass(frozen=True, eq=False)
class IdleCauses:
    """Idle intervals and their causes as columns of equal length, by step, rank and time.

    Attributes:
        program: whose actions the columns below name by their index; −1 = none.
        steps: the steps that were looked at.
        step: int32, number of the step.
        rank: int32, the rank that is idle.
        start: float64, seconds.
        end: float64, seconds.
        cause: int8, a Cause.
        gap: int32, number of the whole interval of which this row is a part: a gap in the picture.
        awaited: int32, the action that the rank waits for.
        fault: int32, the action at fault.
        after: int32, the action that ends the interval by starting.
        faults: by step, those that were put there.
    """

    program: Program
    steps: tuple[int, ...]
    step: Ints
    rank: Ints
    start: Floats
    end: Floats
    cause: npt.NDArray[np.int8]
    gap: Ints
    awaited: Ints
    fault: Ints
    after: Ints
    faults: Mapping[int, Faults] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def seconds(self) -> Floats:
        """(n_rows,) how long each part is."""
        return np.asarray(self.end - self.start)

    def totals(self) -> Floats:
        """(n_steps, n_ranks, n_causes) idle seconds; their sum over causes is the rank's idle time in that step."""
        found = np.zeros((len(self.steps), self.program.n_ranks, len(Cause)))
        np.add.at(found, (np.searchsorted(self.steps, self.step), self.rank, self.cause), self.seconds)
        return found

    def sentence(self, row: int) -> str:
        """What a pointer that rests on row `row` is told."""
        fault = int(self.fault[row])
        return sentence_for(
            self.program,
            Cause(int(self.cause[row])),
            rank=int(self.rank[row]),
            seconds=float(self.end[row] - self.start[row]),
            awaited=int(self.awaited[row]),
            fault=fault,
            after=int(self.after[row]),
            put_there=self.put_there(int(self.step[row]), fault),
        )

    def put_there(self, step: int, action: int) -> bool:
        """Whether `action`, −1 for none, is lengthened in this step by a fault that was put there."""
        faults = self.faults.get(step)
        return action >= 0 and faults is not None and faults.are_of(self.program, action)

    def to_frame(self) -> pd.DataFrame:
        """As a DataFrame, as `idle_causes` gives it."""
        import pandas as pd

        names = pd.Index([cause.name.lower() for cause in Cause])
        columns: dict[str, Any] = {
            "step": self.step,
            "rank": self.rank,
            "start": self.start,
            "end": self.end,
            "seconds": self.seconds,
            "cause": pd.Categorical.from_codes(self.cause, categories=names),
        }
        columns |= self._of_actions(self.fault)
        columns["sentence"] = self._sentences()
        return pd.DataFrame(columns)

    def _sentences(self) -> list[str]:
        """As `sentence`, of all rows."""
        named = {int(cause): cause for cause in Cause}
        table = (self.step, self.cause, self.rank, self.seconds, self.awaited, self.fault, self.after)
        return [
            sentence_for(
                self.program,
                named[cause],
                rank=rank,
                seconds=long,
                awaited=awaited,
                fault=fault,
                after=after,
                put_there=self.put_there(step, fault),
            )
            for step, cause, rank, long, awaited, fault, after in zip(*(one.tolist() for one in table), strict=True)
        ]

    def _of_actions(self, index: Ints) -> dict[str, Any]:
        """Kind, stage, micro-batch and rank of actions; "" and −1 where there is none."""
        program = self.program
        names = np.array([*_KIND_NAMES, ""], dtype=object)
        there = index >= 0
        return {
            "kind": names[np.where(there, program.kind[index], -1)] if program.n_actions else np.full(len(index), ""),
            "stage": np.where(there, program.stage[index], -1),
            "micro_batch": np.where(there, program.micro_batch[index], -1),
            "at_rank": np.where(there, program.rank_of_action[index], -1),
        }
