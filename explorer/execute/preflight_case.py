"""What is known of a run before it begins: all that pre-flight's rules look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from explorer.core import Program
from explorer.execute.checks import Loss, Values
from explorer.execute.fit import Sample
from explorer.execute.preflight_report import Finding
from explorer.execute.stages import CutModel
from explorer.execute.traits import Traits


@dataclass(frozen=True)
class Case:
    """A run that could begin.

    Attributes:
        program: that would run.
        model: cut into its stages.
        inputs: of each micro-batch.
        targets: of each micro-batch, or None.
        loss: of one micro-batch, or None.
        samples: what each stage takes and gives.
        output: the last stage's, of the first micro-batch.
        traits: what the first micro-batch's forward did.
        backend: where it would run.
    """

    program: Program
    model: CutModel
    inputs: Sequence[Values]
    targets: Sequence[torch.Tensor] | None
    loss: Loss | None
    samples: Sequence[Sample]
    output: Any
    traits: Traits
    backend: str

    @property
    def n_micro_batches(self) -> int:
        """Of the program."""
        return self.program.n_micro_batches

    @property
    def n_rows(self) -> int:
        """Of one micro-batch."""
        return len(self.inputs[0][0])


Rule = Callable[[Case], Iterator[Finding]]
