"""`explorer simulate`: how long a schedule takes, from costs."""

from __future__ import annotations

import argparse
import math
from typing import Any

from explorer.analysis import peak_bytes
from explorer.cli.arguments import (
    Commands,
    add_link,
    add_nodes,
    add_order,
    add_output,
    add_program,
    links_of,
    number,
    program_of,
)
from explorer.cli.output import report, size_of, to_json
from explorer.cli.sizes import add_bytes, bytes_of
from explorer.core import Kind, Program, Trace
from explorer.core.metrics import step_seconds
from explorer.figures.units import bytes_unit, time_unit


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("simulate", help="lay a schedule out under costs", description=__doc__)
    add_program(parser)
    add_order(parser)
    parser.add_argument("--forward", type=number, default=1.0, metavar="S", help="seconds of a stage's forward (1)")
    parser.add_argument("--backward", type=number, metavar="S", help="seconds of a stage's backward (twice forward)")
    add_link(parser)
    add_nodes(parser)
    add_bytes(parser, of="stage")
    parser.add_argument(
        "--optimizer",
        type=number,
        default=0.0,
        metavar="S",
        help="seconds of a stage's update, behind the makespan (0)",
    )
    add_output(parser)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, print, and write the page if one is wanted."""
    from explorer.core import Costs
    from explorer.lowering import add_updates
    from explorer.planner.asked import check_limit
    from explorer.simulate import simulate

    if check_limit(arguments.memory_limit) == math.inf:
        arguments.memory_limit = None
    program = program_of(arguments)
    if arguments.optimizer:
        program = add_updates(program)

    costs = Costs(
        forward=arguments.forward,
        backward=arguments.backward,
        **bytes_of(arguments),
        optimizer=arguments.optimizer,
        **links_of(arguments, program.n_ranks),
    )
    trace = simulate(program, costs)
    values = to_json(
        {**trace.summary(), "step_seconds": step_seconds(trace.events), **_memory(trace), **size_of(trace)}
    )
    if arguments.html is not None:
        from explorer.figures import timeline_and_memory, write_html

        figure = timeline_and_memory(trace, device_bytes=arguments.memory_limit)
        write_html(figure, arguments.html, title=f"{trace.program.name} – Pipeline Explorer")
    print(values if arguments.json else report(trace, _columns(trace)) + _notes(trace, arguments))
    return 0


def _notes(trace: Trace, arguments: argparse.Namespace) -> str:
    """What else is to be said, each in a sentence."""
    return (
        _limit(trace, arguments.memory_limit)
        + _optimizer(trace)
        + _nodes(arguments)
        + _share(trace.program)
        + _few(trace.program)
    )


def _memory(trace: Trace) -> dict[str, Any]:
    """The most bytes that each rank holds, for JSON, where any are known."""
    return {"peak_bytes": peak_bytes(trace).tolist()} if len(trace.memory) else {}


def _columns(trace: Trace) -> dict[str, list[str]]:
    """The same for people."""
    peaks = _memory(trace).get("peak_bytes", [])
    unit = bytes_unit(max(peaks, default=0))
    return {"peak memory": [unit.show(held) for held in peaks]} if peaks else {}


def _limit(trace: Trace, limit: float | None) -> str:
    """Whether every rank has memory enough, where a limit is given."""
    if limit is None:
        return ""
    device = bytes_unit(limit).show(limit)
    if not len(trace.memory):
        return f"\nno bytes to hold against the {device} of a rank: give --activation-bytes or --parameter-bytes\n"
    peaks = peak_bytes(trace)
    over = [rank for rank in range(trace.n_ranks) if peaks[rank] > limit]
    if not over:
        return f"\nevery rank stays within its {device}\n"
    worst = max(over, key=lambda rank: int(peaks[rank]))
    excess = float(peaks[worst] - limit)
    many = f"{len(over)} ranks hold" if len(over) > 1 else "1 rank holds"
    return f"\n{many} more than the limit of {device}; rank {worst} by {bytes_unit(excess).show(excess)}\n"


def _optimizer(trace: Trace) -> str:
    """How long a step is with its updates, which the makespan leaves out."""
    if not (trace.program.kind == Kind.U).any():
        return ""
    unit = time_unit(trace.makespan, trace.clock)
    return (
        f"\nwith the optimizer, which the makespan leaves out, a step takes {unit.show(step_seconds(trace.events))}\n"
    )


def _nodes(arguments: argparse.Namespace) -> str:
    """That links are shared for nothing where bytes take no time."""
    if not arguments.ranks_per_node or (arguments.message_bytes and math.isfinite(arguments.bandwidth)):
        return ""
    return "\nmessages hinder each other only where their bytes take time: give --message-bytes and --bandwidth\n"


def _share(program: Program) -> str:
    """That costs are of a stage, where a rank has several: else more chunks look like more work."""
    chunks = program.n_stages // program.n_ranks
    if chunks < 2:
        return ""
    return (
        f"\n--forward and --backward are of one stage, and each rank has {chunks}: for the work of one stage a rank, "
        f"divide them by {chunks}\n"
    )


def _few(program: Program) -> str:
    """That more micro-batches would help, where there are fewer than stages."""
    if program.n_micro_batches >= program.n_stages:
        return ""
    return (
        f"\n{program.n_micro_batches} micro-batches are fewer than the {program.n_stages} stages: ranks wait for one "
        "another much of the time\n"
    )
