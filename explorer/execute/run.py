"""What came of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from explorer.analysis import peak_bytes
from explorer.core import Category, Trace
from explorer.execute.notes import notes_of
from explorer.execute.parity import Parity
from explorer.execute.preflight_report import Report

if TYPE_CHECKING:
    import torch

    from explorer.execute.events import Started


@dataclass(frozen=True, eq=False)
class Run:
    """An executed program: its trace, losses and gradients, and whether they are right.

    Attributes:
        trace: what ran when: on the ranks' virtual clocks, operations measured, links modelled, or on a real one.
        predicted: what the simulator says to the typical costs that this run measured.
        losses: of each step, the mean over its micro-batches; empty without a loss.
        gradients: name → of the last step.
        outputs: the last stage's outputs by micro-batch, joined, of a forward-only program; else None.
        parity: whether losses, gradients, parameters and buffers equal the unpipelined model's on the same batch; true
            in a condition if so, else with the reason.
        parity_worst: the largest relative difference among them.
        reference: in a sentence, what it was compared with.
        started: how long its processes took to start, and why; None in the kernel.
        recording: the share of a step that the busiest rank spent on recording it; NaN in the kernel, where no time
            between operations counts.
        preflight: what was found before it began: warnings and notes.
        first_step: how many steps the training had done before, where it was resumed.
    """

    trace: Trace
    predicted: Trace
    losses: list[float]
    gradients: Mapping[str, torch.Tensor]
    outputs: torch.Tensor | None
    parity: Parity
    parity_worst: float
    reference: str
    started: Started | None = None
    recording: float = math.nan
    preflight: Report = field(repr=False, default_factory=Report)
    first_step: int = 0
    _state: Mapping[str, torch.Tensor] = field(repr=False, default_factory=dict)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The trained parameters and buffers, named as the caller's model names them."""
        return dict(self._state)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about its times, in sentences."""
        return notes_of(self.trace.program, self.trace.clock, self.started, self.recording)

    @property
    def peak_bytes(self) -> npt.NDArray[np.int64]:
        """(n_ranks,) the most bytes each rank held at once."""
        return peak_bytes(self.trace)

    @property
    def peak_activation_bytes(self) -> npt.NDArray[np.int64]:
        """(n_ranks,) the most bytes of activations each rank held at once."""
        return peak_bytes(self.trace, category=Category.ACTIVATIONS)

    def __repr__(self) -> str:
        losses = ", ".join(f"{loss:.4g}" for loss in self.losses)
        name, makespan = self.trace.program.name, self.trace.makespan
        return f"Run({name!r}, losses=[{losses}], parity={bool(self.parity)}, makespan={makespan:.4g})"
