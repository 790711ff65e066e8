"""Whether a training equals the unpipelined model's, row by row, and if not, by which factor it is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from explorer.execute.parity_factors import Counts
from explorer.execute.parity_reasons import reason_of
from explorer.execute.parity_rounding import Rounding, Sketch, norm, norm_of
from explorer.execute.parity_rows import Row, loss_rows, number_row, tensor_rows, unjudged

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 6  # rows


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a training came to.

    Attributes:
        losses: of each step.
        gradients: name → of the last step.
        parameters: name → after the last step.
        output: of the whole batch, where nothing was trained; else None.
        buffers: name → after the last step.
        sketches: of each step's gradients.
        explained: why its loss is another one, where that is known.
    """

    losses: Sequence[float]
    gradients: Mapping[str, torch.Tensor]
    parameters: Mapping[str, torch.Tensor]
    output: torch.Tensor | None = None
    buffers: Mapping[str, torch.Tensor] = field(default_factory=dict)
    sketches: Sequence[Sketch] = ()
    explained: str = ""


@dataclass(frozen=True)
class Parity:
    """Whether a training equals its reference: true in a condition if it does.

    Attributes:
        rows: what was compared.
        reference: in a sentence, what with.
        reason: what is wrong and what would do; "" where nothing is.
        note: what is to be known where all is well.
    """

    rows: tuple[Row, ...]
    reference: str
    reason: str = ""
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether every row is within what rounding may do."""
        return all(row.ok for row in self.rows)

    @property
    def worst(self) -> float:
        """The largest relative difference."""
        return max((row.difference for row in self.rows), default=0.0)

    @property
    def gradient_ratios(self) -> dict[str, float]:
        """Name → ours to the reference's gradient, of the last step."""
        return {row.name: row.ratio for row in self.rows if row.what == "gradient" and row.name}

    @property
    def gradient_norm(self) -> tuple[float, float]:
        """The norm over all gradients of the last step: ours and the reference's; NaN without gradients."""
        found = [(row.ours, row.theirs) for row in self.rows if row.what == "gradient norm"]
        return found[-1] if found else (math.nan, math.nan)

    def to_frame(self) -> pd.DataFrame:
        """A row for each comparison, with whether it is ok."""
        import pandas as pd

        frame = pd.DataFrame(list(self.rows), columns=list(Row._fields))
        return frame.assign(ok=[row.ok for row in self.rows])

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return "True" if self.holds else f"False: {self.reason}"

    def __repr__(self) -> str:
        verdict = "equal to" if self.holds else "NOT equal to"
        lines = [f"Parity: {verdict} {self.reference}; worst relative difference {self.worst:.2g}"]
        lines += [f"  {text}" for text in (self.reason, self.note) if text]
        for row in sorted((row for row in self.rows if not row.ok), key=lambda row: -row.difference)[:_SHOWN]:
            step = f" in step {row.step}" if row.step >= 0 else ""
            lines.append(
                f"  {row.what} {row.name}{step}: {row.ours:.6g} for {row.theirs:.6g}, ratio {row.ratio:.4g}, cosine "
                f"{row.cosine:.4g}, differs by {row.difference:.2g}, allowed {row.allowed:.2g}"
            )
        return "\n".join(lines)


def compare(
    run: Outcome,
    reference: Outcome,
    sentence: str,
    *,
    rounding: Rounding | None = None,
    counts: Counts | None = None,
    note: str = "",
) -> Parity:
    """How far a run is from its reference, and why.

    Args:
        run: what it came to.
        reference: what it should have come to.
        sentence: what the reference is.
        rounding: what may differ.
        counts: what a wrong factor may be made of.
        note: what is to be known where all is well.
    """
    rounding, counts = rounding or Rounding(), counts or Counts()
    last = max(len(reference.losses) - 1, 0)
    allowed = rounding.of_tensors(last)
    rows = [*loss_rows(run.losses, reference.losses, rounding), *_sketch_rows(run, reference, rounding)]
    rows += tensor_rows("gradient", run.gradients, reference.gradients, allowed, step=last)
    rows += _norm_row(run, reference, allowed, last)
    largest = max(map(norm, reference.gradients.values()), default=0.0)
    moving = {name for name, grad in reference.gradients.items() if norm(grad) > rounding.noise * largest}
    ours, theirs = ({n: p for n, p in one.parameters.items() if n in moving} for one in (run, reference))
    rows += tensor_rows("parameter", ours, theirs, allowed, step=last)
    if run.buffers and reference.buffers:
        rows += tensor_rows("buffer", run.buffers, reference.buffers, allowed, step=last)
    if run.output is not None and reference.output is not None:
        rows += tensor_rows("output", {"": run.output}, {"": reference.output}, allowed, step=-1)
    note = note or unjudged(reference.gradients, allowed)
    return Parity(tuple(rows), sentence, reference.explained or reason_of(rows, counts), note)


def _sketch_rows(run: Outcome, reference: Outcome, rounding: Rounding) -> list[Row]:
    """Of the steps before the last: the worst gradient of each."""
    rows = []
    pairs = list(zip(run.sketches, reference.sketches, strict=False))[:-1]
    for step, (ours, theirs) in enumerate(pairs):
        found = tensor_rows("gradient", ours, theirs, rounding.of_tensors(step), step=step)
        if found:
            rows.append(max(found, key=lambda row: row.difference)._replace(name=""))
    return rows


def _norm_row(run: Outcome, reference: Outcome, allowed: float, step: int) -> list[Row]:
    if not reference.gradients:
        return []
    ours, theirs = (norm_of(list(outcome.gradients.values())) for outcome in (run, reference))
    return [number_row("gradient norm", step, ours, theirs, allowed)]
