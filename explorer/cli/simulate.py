"""`explorer simulate`: how long a schedule takes, from costs."""

from __future__ import annotations

import argparse
import math

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
from explorer.core import Kind, Program, Trace
from explorer.core.metrics import step_seconds
from explorer.figures.units import time_unit


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("simulate", help="lay a schedule out under costs", description=__doc__)
    add_program(parser)
    add_order(parser)
    parser.add_argument("--forward", type=number, default=1.0, metavar="S", help="seconds of a stage's forward (1)")
    parser.add_argument("--backward", type=number, metavar="S", help="seconds of a stage's backward (twice forward)")
    add_link(parser)
    add_nodes(parser)
    parser.add_argument("--message-bytes", type=number, default=0.0, metavar="B", help="bytes of a message (0)")
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
    from explorer.simulate import simulate

    program = program_of(arguments)
    if arguments.optimizer:
        program = add_updates(program)

    costs = Costs(
        forward=arguments.forward,
        backward=arguments.backward,
        message_bytes=arguments.message_bytes,
        optimizer=arguments.optimizer,
        **links_of(arguments, program.n_ranks),
    )
    trace = simulate(program, costs)
    values = to_json({**trace.summary(), "step_seconds": step_seconds(trace.events), **size_of(trace)})
    if arguments.html is not None:
        from explorer.figures import timeline_and_memory, write_html

        write_html(timeline_and_memory(trace), arguments.html, title=f"{trace.program.name} – Pipeline Explorer")
    print(values if arguments.json else report(trace) + _notes(trace, arguments))
    return 0


def _notes(trace: Trace, arguments: argparse.Namespace) -> str:
    """What else is to be said, each in a sentence."""
    return _optimizer(trace) + _nodes(arguments) + _share(trace.program) + _few(trace.program)


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
