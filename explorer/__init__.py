"""See, predict and really run pipeline-parallel training.

    import explorer as ex
    ex.explore()                                                  # the app
    program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)   # who does what, in which order
    trace = ex.simulate(program, ex.Costs(forward=1.0, backward=2.0, latency=0.1))
    trace.makespan, trace.bubble_ratio, trace.to_frame()
    ex.timeline(trace)                                            # a plotly figure

Names are loaded on first use, so importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` tells type checkers that these are meant for others
    from explorer.analysis import Cause as Cause
    from explorer.analysis import IdleCauses as IdleCauses
    from explorer.analysis import behind_messages as behind_messages
    from explorer.analysis import critical_path as critical_path
    from explorer.analysis import gains as gains
    from explorer.analysis import idle_causes as idle_causes
    from explorer.analysis import idle_intervals as idle_intervals
    from explorer.analysis import idle_summary as idle_summary
    from explorer.analysis import (
        in_flight_over_time as in_flight_over_time,
    )
    from explorer.analysis import (
        items as items,
    )
    from explorer.analysis import (
        memory_over_time as memory_over_time,
    )
    from explorer.analysis import (
        peak_bytes as peak_bytes,
    )
    from explorer.analysis import (
        peak_holders as peak_holders,
    )
    from explorer.analysis import (
        phases as phases,
    )
    from explorer.analysis import (
        residuals as residuals,
    )
    from explorer.analysis import (
        sensitivity as sensitivity,
    )
    from explorer.analysis import (
        slack as slack,
    )
    from explorer.analysis import (
        throughput as throughput,
    )
    from explorer.core import (
        Action as Action,
    )
    from explorer.core import (
        Category as Category,
    )
    from explorer.core import (
        Costs as Costs,
    )
    from explorer.core import (
        Events as Events,
    )
    from explorer.core import (
        Kind as Kind,
    )
    from explorer.core import (
        MemoryChanges as MemoryChanges,
    )
    from explorer.core import (
        Origin as Origin,
    )
    from explorer.core import (
        Overlap as Overlap,
    )
    from explorer.core import (
        Placement as Placement,
    )
    from explorer.core import (
        Program as Program,
    )
    from explorer.core import (
        Trace as Trace,
    )
    from explorer.core import (
        Waits as Waits,
    )
    from explorer.core import (
        check as check,
    )
    from explorer.core import (
        node_links as node_links,
    )
    from explorer.errors import ExplorerError as ExplorerError
    from explorer.execute import (
        READY_MODELS as READY_MODELS,
    )
    from explorer.execute import DelayAction as DelayAction
    from explorer.execute import DelayMessage as DelayMessage
    from explorer.execute import FailAction as FailAction
    from explorer.execute import Fault as Fault
    from explorer.execute import (
        Hook as Hook,
    )
    from explorer.execute import KillRank as KillRank
    from explorer.execute import Parity as Parity
    from explorer.execute import (
        Recorder as Recorder,
    )
    from explorer.execute import Report as Report
    from explorer.execute import (
        Run as Run,
    )
    from explorer.execute import SlowRank as SlowRank
    from explorer.execute import (
        Stop as Stop,
    )
    from explorer.execute import (
        execute as execute,
    )
    from explorer.execute import faulty_costs as faulty_costs
    from explorer.execute import preflight as preflight
    from explorer.execute import (
        ready_model as ready_model,
    )
    from explorer.execute import record as record
    from explorer.execute import (
        same_as_one_process as same_as_one_process,
    )
    from explorer.figures import (
        compare as compare,
    )
    from explorer.figures import (
        difference_chart as difference_chart,
    )
    from explorer.figures import (
        memory as memory,
    )
    from explorer.figures import (
        memory_stack as memory_stack,
    )
    from explorer.figures import (
        residual_chart as residual_chart,
    )
    from explorer.figures import (
        still_timeline as still_timeline,
    )
    from explorer.figures import (
        sweep_chart as sweep_chart,
    )
    from explorer.figures import (
        sweep_lines as sweep_lines,
    )
    from explorer.figures import (
        timeline as timeline,
    )
    from explorer.figures import (
        timeline_and_memory as timeline_and_memory,
    )
    from explorer.figures import (
        write_html as write_html,
    )
    from explorer.figures import (
        write_image as write_image,
    )
    from explorer.io import (
        from_frame as from_frame,
    )
    from explorer.io import (
        from_grid as from_grid,
    )
    from explorer.io import (
        load as load,
    )
    from explorer.io import (
        save as save,
    )
    from explorer.io import (
        to_grid as to_grid,
    )
    from explorer.lowering import Cure as Cure
    from explorer.lowering import Edits as Edits
    from explorer.lowering import MessageReport as MessageReport
    from explorer.lowering import add_messages as add_messages
    from explorer.lowering import add_updates as add_updates
    from explorer.lowering import check_messages as check_messages
    from explorer.lowering import group_messages as group_messages
    from explorer.lowering import move as move
    from explorer.lowering import one_group_per_peer as one_group_per_peer
    from explorer.lowering import split_backward as split_backward
    from explorer.planner import Difference as Difference
    from explorer.planner import comparison as comparison
    from explorer.planner import explain_difference as explain_difference
    from explorer.planner import sweep as sweep
    from explorer.schedules import register as register
    from explorer.schedules import schedule as schedule
    from explorer.schedules import schedules as schedules
    from explorer.schedules import unregister as unregister
    from explorer.simulate import simulate as simulate
    from explorer.simulate import simulate_events as simulate_events
    from explorer.widgets import Explorer as Explorer
    from explorer.widgets import explore as explore

_HOME = {
    **dict.fromkeys(
        ("behind_messages", "in_flight_over_time", "items", "memory_over_time", "peak_bytes", "phases", "throughput"),
        "analysis",
    ),
    **dict.fromkeys(("peak_holders", "residuals"), "analysis"),
    **dict.fromkeys(("Cause", "IdleCauses", "critical_path", "gains", "idle_causes", "idle_intervals"), "analysis"),
    **dict.fromkeys(("idle_summary", "sensitivity", "slack"), "analysis"),
    **dict.fromkeys(("Action", "Category", "Costs", "Events", "Kind", "MemoryChanges", "Origin"), "core"),
    **dict.fromkeys(("Overlap", "Placement", "Program", "Trace", "Waits", "check", "node_links"), "core"),
    **dict.fromkeys(("ExplorerError",), "errors"),
    **dict.fromkeys(("Hook", "READY_MODELS", "Recorder", "Run", "Stop", "execute", "ready_model"), "execute"),
    **dict.fromkeys(("Parity", "Report", "preflight", "same_as_one_process"), "execute"),
    **dict.fromkeys(("compare", "difference_chart", "memory_stack", "residual_chart"), "figures"),
    **dict.fromkeys(("sweep_chart", "sweep_lines"), "figures"),
    **dict.fromkeys(("DelayAction", "DelayMessage", "FailAction", "Fault", "KillRank", "SlowRank"), "execute"),
    **dict.fromkeys(("faulty_costs", "record"), "execute"),
    **dict.fromkeys(("memory", "timeline", "timeline_and_memory", "write_html"), "figures"),
    **dict.fromkeys(("still_timeline", "write_image"), "figures"),
    **dict.fromkeys(("from_frame", "from_grid", "load", "save", "to_grid"), "io"),
    **dict.fromkeys(("Edits", "move"), "lowering"),
    **dict.fromkeys(("Cure", "MessageReport", "add_messages", "check_messages"), "lowering"),
    **dict.fromkeys(("add_updates", "group_messages", "one_group_per_peer", "split_backward"), "lowering"),
    **dict.fromkeys(("Difference", "comparison", "explain_difference", "sweep"), "planner"),
    **dict.fromkeys(("register", "schedule", "schedules", "unregister"), "schedules"),
    **dict.fromkeys(("simulate", "simulate_events"), "simulate"),
    **dict.fromkeys(("Explorer", "explore"), "widgets"),
}

__version__ = "0.1.0"
__all__ = sorted((*_HOME, "__version__"))  # noqa: PLE0605  the table is the list


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


class _Face(ModuleType):
    """Keeps `explorer.simulate` the function, though a room is called so too.

    Importing a submodule binds it to its package; for the names of the public face that is left out. The rooms
    stay reachable by `from explorer.simulate import …`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOME and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
