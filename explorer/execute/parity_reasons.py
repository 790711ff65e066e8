"""Why a training is not its reference's, told from which rows are wrong and by how much."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from explorer.execute.parity_factors import Counts, recognise
from explorer.execute.parity_rows import Row

_ALIKE = 0.999  # cosine above which two gradients differ by a factor alone
_SHOWN = 6  # names


def reason_of(rows: Sequence[Row], counts: Counts) -> str:
    """What is wrong and what would do; "" if nothing is."""
    wrong = [row for row in rows if not row.ok]
    if not wrong:
        return ""
    gradients = [row for row in rows if row.what == "gradient" and row.name and row.theirs]
    losses = [row for row in wrong if row.what == "loss"]
    off = [row for row in gradients if not row.ok]
    if off:
        return _of_gradients(off, gradients, counts, forward_differs=bool(losses))
    if losses and math.isfinite(losses[0].ratio):
        return recognise(losses[0].ratio, counts).sentence("losses").replace("large", "high").replace("small", "low")
    names = ", ".join(dict.fromkeys(f"{row.what} {row.name}".strip() for row in wrong[:_SHOWN]))
    return f"{names} differ by more than rounding can do; look at what changes them"


def _of_gradients(off: Sequence[Row], all_of_them: Sequence[Row], counts: Counts, *, forward_differs: bool) -> str:
    missing = [row.name for row in off if math.isnan(row.cosine)]
    if missing:
        names = ", ".join(missing[:_SHOWN])
        return f"gradients of {names} are there on one side only; look for names and stages left out"
    scaled = [row for row in off if abs(row.cosine) > _ALIKE]
    ratio = float(torch.tensor([row.ratio for row in scaled]).median()) if scaled else math.nan
    alike = [row for row in scaled if math.isclose(row.ratio, ratio, rel_tol=max(0.01, 2 * row.allowed))]
    if len(alike) == len(off):
        everywhere = len(alike) == len(all_of_them)
        some = f"gradients of {', '.join(row.name for row in alike[:_SHOWN])} ({len(alike)} of {len(all_of_them)})"
        return recognise(ratio, counts).sentence("gradients" if everywhere else some)
    names = ", ".join(row.name for row in sorted(off, key=lambda row: row.cosine)[:_SHOWN])
    where = (
        "losses differ as well: look for another forward, another order of rows or other random numbers"
        if forward_differs
        else "losses agree: look for a recomputed forward that draws other random numbers (preserve_rng_state), for "
        "tied weights whose gradients are not summed, or for micro-batches left out"
    )
    return f"gradients of {names} differ by no common factor; {where}"
