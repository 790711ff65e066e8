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
    from explorer.analysis import (
        Cause as Cause,
        IdleCauses as IdleCauses,
        behind_messages as behind_messages,
        critical_path as critical_path,
        gains as gains,
        idle_causes as idle_causes,
        idle_intervals as idle_intervals,
        idle_summary as idle_summary,
        in_flight_over_time as in_flight_over_time,
        items as items,
        memory_over_time as memory_over_time,
        peak_bytes as peak_bytes,
        peak_holders as peak_holders,
        phases as phases,
        residuals as residuals,
        sensitivity as sensitivity,
        slack as slack,
        throughput as throughput,
    )
    from explorer.core import (
        Action as Action,
        Category as Category,
        Costs as Costs,
        Events as Events,
        Kind as Kind,
        MemoryChanges as MemoryChanges,
        Origin as Origin,
        Overlap as Overlap,
        Placement as Placement,
        Program as Program,
        Trace as Trace,
        Waits as Waits,
        check as check,
        node_links as node_links,
    )
    from explorer.errors import (
        CircularWaitError as CircularWaitError,
        CostError as CostError,
        EngineError as EngineError,
        ExplorerError as ExplorerError,
        InputError as InputError,
        MissingError as MissingError,
        ModelError as ModelError,
        ProgramError as ProgramError,
        RunError as RunError,
        RunStopped as RunStopped,
        ScheduleError as ScheduleError,
    )
    from explorer.execute import (
        READY_MODELS as READY_MODELS,
        DelayAction as DelayAction,
        DelayMessage as DelayMessage,
        FailAction as FailAction,
        Fault as Fault,
        Hook as Hook,
        KillRank as KillRank,
        Parity as Parity,
        Recorder as Recorder,
        Report as Report,
        Run as Run,
        SlowRank as SlowRank,
        Stop as Stop,
        execute as execute,
        faulty_costs as faulty_costs,
        preflight as preflight,
        ready_model as ready_model,
        record as record,
        same_as_one_process as same_as_one_process,
    )
    from explorer.figures import (
        compare as compare,
        difference_chart as difference_chart,
        memory as memory,
        memory_stack as memory_stack,
        residual_chart as residual_chart,
        still_timeline as still_timeline,
        sweep_chart as sweep_chart,
        sweep_lines as sweep_lines,
        timeline as timeline,
        timeline_and_memory as timeline_and_memory,
        write_html as write_html,
        write_image as write_image,
    )
    from explorer.io import (
        from_frame as from_frame,
        from_grid as from_grid,
        load as load,
        save as save,
        to_grid as to_grid,
    )
    from explorer.lowering import (
        Cure as Cure,
        Edits as Edits,
        MessageReport as MessageReport,
        add_messages as add_messages,
        add_updates as add_updates,
        check_messages as check_messages,
        group_messages as group_messages,
        move as move,
        one_group_per_peer as one_group_per_peer,
        split_backward as split_backward,
    )
    from explorer.planner import (
        Difference as Difference,
        comparison as comparison,
        explain_difference as explain_difference,
        sweep as sweep,
    )
    from explorer.schedules import (
        register as register,
        schedule as schedule,
        schedules as schedules,
        unregister as unregister,
    )
    from explorer.simulate import simulate as simulate, simulate_events as simulate_events
    from explorer.widgets.explore import explore as explore
    from explorer.widgets.explorer import Explorer as Explorer

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
    **dict.fromkeys(
        ("CircularWaitError", "CostError", "EngineError", "ExplorerError", "InputError", "ScheduleError"), "errors"
    ),
    **dict.fromkeys(("MissingError", "ModelError", "ProgramError", "RunError", "RunStopped"), "errors"),
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
