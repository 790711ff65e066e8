"""Program + a torch model → Trace, losses, gradients. Nothing here imports torch before a run needs it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from explorer.errors import MissingError

if TYPE_CHECKING:
    from explorer.execute.fault_words import check_faults, faulty_costs, parse_fault
    from explorer.execute.faults import DelayAction, DelayMessage, FailAction, Fault, KillRank, SlowRank
    from explorer.execute.hooks import Hook
    from explorer.execute.kernel import execute
    from explorer.execute.models import ReadyModel, ready_model
    from explorer.execute.parity import Parity
    from explorer.execute.parity_own import same_as_one_process
    from explorer.execute.preflight_look import preflight
    from explorer.execute.preflight_report import Report
    from explorer.execute.recorder import Recorder
    from explorer.execute.recording import record
    from explorer.execute.run import Run
    from explorer.execute.stop import Stop

__all__ = [
    "READY_MODELS",
    "DelayAction",
    "DelayMessage",
    "FailAction",
    "Fault",
    "Hook",
    "KillRank",
    "Parity",
    "ReadyModel",
    "Recorder",
    "Report",
    "Run",
    "SlowRank",
    "Stop",
    "check_faults",
    "execute",
    "faulty_costs",
    "parse_fault",
    "preflight",
    "ready_model",
    "record",
    "same_as_one_process",
]

READY_MODELS: Mapping[str, str] = MappingProxyType(
    {
        "mlp": "MLP: fully connected layers",
        "conv": "Convolutional net",
        "gpt": "GPT: embedding, transformer blocks, head; by characters",
    }
)

_HOME = {
    **dict.fromkeys(("DelayAction", "DelayMessage", "FailAction", "Fault", "KillRank", "SlowRank"), "faults"),
    **dict.fromkeys(("check_faults", "faulty_costs", "parse_fault"), "fault_words"),
    "Hook": "hooks",
    "Stop": "stop",
    "Recorder": "recorder",
    "record": "recording",
    "execute": "kernel",
    "preflight": "preflight_look",
    "Report": "preflight_report",
    "Parity": "parity",
    "same_as_one_process": "parity_own",
    "Run": "run",
    "ReadyModel": "models",
    "ready_model": "models",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingError('a run needs torch; it is not installed; try pip install "torch>=2.12"') from error
    value = getattr(home, name)
    globals()[name] = value
    return value
