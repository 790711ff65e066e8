"""The fields of memory: what a rank's share takes, and what a rank's device has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.figures.units import bytes_unit
from explorer.widgets.field import Field
from explorer.widgets.inputs import linear, size
from explorer.widgets.look import Look, show
from explorer.widgets.settings import Settings

_MB, _GB = 1e6, 1e9
_SCALES = {"activation_bytes": _MB, "recompute_bytes": _MB, "parameter_bytes": _MB, "memory_limit": _GB}
_SHARES = ("kept_share", "optimizer_ratio")
_UNKNOWN = "; 0: not known, and micro-batches are counted"


def memory_inputs(settings: Settings, look: Look) -> dict[str, Any]:
    """Name of a setting → the input it is typed in, MB and GB being of a thousand."""
    shown = {name: getattr(settings, name) / scale for name, scale in _SCALES.items()}
    return {
        "activation_bytes": size("Activations, MB", shown["activation_bytes"], look),
        "kept_share": linear("Kept for W", settings.kept_share, 1.0, 0.05, look, digits=2),
        "recompute_bytes": size("Rebuilt, MB", shown["recompute_bytes"], look),
        "parameter_bytes": size("Parameters, MB", shown["parameter_bytes"], look),
        "optimizer_ratio": linear("Optimizer × param.", settings.optimizer_ratio, 8.0, 0.5, look),
        "memory_limit": size("Device memory, GB", shown["memory_limit"], look),
    }


def read_memory(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that these values of the inputs stand for; whole bytes."""
    return {
        **{name: float(round(values[name] * scale)) for name, scale in _SCALES.items()},
        **{name: float(values[name]) for name in _SHARES},
    }


def describe_memory(fields: Mapping[str, Field]) -> None:
    """Say what each size is of, in the unit of the picture too; show those that matter."""
    held = read_memory({name: fields[name].value for name in (*_SCALES, *_SHARES)})
    activations, parameters = held["activation_bytes"], held["parameter_bytes"]
    fields["activation_bytes"].say(
        f"{_binary(activations)}that a micro-batch keeps of a rank's share, from F until its backward ends"
        + ("" if activations else _UNKNOWN)
    )
    fields["kept_share"].say("of the activations, from the end of I to the end of W; schedules that split B")
    fields["recompute_bytes"].say("that a backward holds besides while it has its forward again")
    fields["parameter_bytes"].say(f"{_binary(parameters)}of a rank's share; gradients are as large")
    fields["optimizer_ratio"].say("Adam 2, or 6 with float32 copies beside 16 bits; SGD 0, with momentum 1")
    limit = held["memory_limit"]
    fields["memory_limit"].say(
        f"{_binary(limit)}of each rank, for everything" if limit else "of each rank; 0: no limit"
    )
    show(fields["kept_share"], activations > 0)
    show(fields["recompute_bytes"], activations > 0 and fields["recompute"].value > 0)
    show(fields["optimizer_ratio"], parameters > 0)


def _limit_words(limit: float, *, known: bool) -> str:
    if not limit:
        return "of each rank; 0: no limit"
    return f"{_binary(limit)}of each rank, for everything" + ("" if known else "; give Activations or Parameters")


def _binary(amount: float) -> str:
    """The amount as the picture writes it, since 80 GB are 74.5 GiB."""
    return f"{bytes_unit(amount).show(amount)} " if amount else ""
