"""What a file of orders cannot hold."""

from __future__ import annotations

import warnings

from explorer.core import Program


def warn_of_loss(program: Program, form: str) -> None:
    """Warn of what `program` has besides its orders, which `form` leaves out."""
    lost = {
        "waits": program.waits is not None and len(program.waits.after) > 0,
        "capacities": program.capacities is not None,
        "weight versions": program.weight_versions is not None,
    }
    if any(lost.values()):
        named = " and ".join(name for name, there in lost.items() if there)
        warnings.warn(f"{program.name[:40]}: {form} holds orders only; its {named} are left out", stacklevel=4)
