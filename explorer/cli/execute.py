"""`explorer execute`: really train a small model under a schedule, and measure it."""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import TYPE_CHECKING, Any

from explorer.cli.arguments import (
    Commands,
    add_checkpoints,
    add_link,
    add_nodes,
    add_output,
    add_program,
    checkpoints_of,
    links_of,
    program_of,
    whole,
)
from explorer.cli.output import report, size_of, to_json
from explorer.cli.training import training_of
from explorer.errors import InputError, RunError
from explorer.figures.units import bytes_unit

if TYPE_CHECKING:
    from explorer.core import Program, Trace
    from explorer.execute import Run

PARITY_FAILED = 1
_MOST_STEPS = 100_000


def add(commands: Commands) -> None:
    """Add this command."""
    from explorer.execute import READY_MODELS

    parser = commands.add_parser("execute", help="really run a schedule", description=__doc__)
    add_program(parser)
    parser.add_argument(
        "--backend",
        default="kernel",
        choices=["kernel", "processes"],
        help="where ranks run: all in this process, or in one each, those of torchrun if it started this (kernel)",
    )
    parser.add_argument(
        "--model", default="mlp", help=f"what is trained: {', '.join(READY_MODELS)}, or your module:function (mlp)"
    )
    parser.add_argument(
        "--layers", type=whole, metavar="N", help="of a ready model, which a stage may have several of (one a stage)"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of torch's random numbers (0)")
    parser.add_argument("--steps", type=whole, default=1, metavar="N", help="training steps (1)")
    add_link(parser)
    add_nodes(parser)
    parser.add_argument(
        "--fault", action="append", metavar="WORDS", help='put into the run on purpose, like "slow rank=2 factor=3"'
    )
    add_checkpoints(parser)
    parser.add_argument("--output", metavar="FILE", help="also save the trace, as run.json.gz, which Perfetto opens")
    add_output(parser)
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Train, print, and write the page if one is wanted; 1 if the gradients are not the unpipelined model's."""
    if not 1 <= arguments.steps <= _MOST_STEPS:
        raise InputError(f"steps is a whole number from 1 to {_MOST_STEPS}; got {arguments.steps}; try 3")
    if arguments.html is not None:
        from explorer.figures.export import check_path

        check_path(arguments.html)  # before the training, not after it
    try:
        done = _train(program_of(arguments), arguments)
    except RunError as error:
        if _is_first() and error.trace is not None and len(error.trace.events):
            _write(arguments, error.trace, None)  # what ran until then
        raise
    if not _is_first():
        return 0 if done.parity else PARITY_FAILED
    values = to_json(_values(done))
    _write(arguments, done.trace, done.predicted)
    print(values if arguments.json else _report(done))
    for finding in done.preflight.warnings:
        sys.stderr.write(f"explorer: {finding.sentence}\n")
    if not done.parity:
        sys.stderr.write(
            f"explorer: the gradients differ from those of {done.reference}; worst by {done.parity_worst:.2g}\n"
        )
    return 0 if done.parity else PARITY_FAILED


def _is_first() -> bool:
    """Whether this process is the one that speaks for all that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def _write(arguments: argparse.Namespace, trace: Trace, predicted: Trace | None) -> None:
    """Write what was asked for of a trace."""
    if arguments.output is not None:
        from explorer.io import save

        save(trace, arguments.output)
    if arguments.html is not None:
        from explorer.figures import timeline_and_memory, write_html

        page = timeline_and_memory(trace, predicted=predicted)
        write_html(page, arguments.html, title=f"{trace.program.name} – Pipeline Explorer")


def _train(program: Program, arguments: argparse.Namespace) -> Run:
    from explorer.cli.progress import Progress
    from explorer.core import Costs
    from explorer.execute import execute, parse_fault

    backend, links = _backend(arguments.backend), Costs(**links_of(arguments, program.n_ranks))
    is_free = arguments.latency == 0 and math.isinf(arguments.bandwidth)
    training = training_of(arguments.model, program, seed=arguments.seed, n_layers=arguments.layers)
    return execute(
        program,
        training.model,
        training.batch,
        loss=training.loss,
        optimizer=training.optimizer,
        n_steps=arguments.steps,
        backend=backend,
        faults=[parse_fault(text) for text in arguments.fault or ()],
        links=None if is_free else links,
        hooks=(Progress(sys.stderr),) if sys.stderr.isatty() and _is_first() else (),
        **checkpoints_of(arguments),
    )


def _backend(name: str) -> str:
    """Processes that torchrun has started are the ranks themselves.

    Raises:
        InputError: if each of several would train all ranks, and write the same files.
    """
    n_started = _n_started()
    if name == "processes":
        return "torchrun" if n_started else name
    if n_started > 1:
        raise InputError(
            f"--backend kernel trains all ranks in one process; torchrun has started {n_started}, each of which would; "
            "add --backend processes, or leave torchrun out"
        )
    return name


def _n_started() -> int:
    """How many processes torchrun has started for this command; 0 if it has not."""
    from explorer.execute.speaking import is_started_by_torchrun

    n_started = os.environ.get("WORLD_SIZE", "")
    return int(n_started) if is_started_by_torchrun() and n_started.isdecimal() else 0


def _values(done: Run) -> dict[str, Any]:
    return {
        **done.trace.summary(),
        "losses": [_or_none(loss) for loss in done.losses],
        "first_step": done.first_step,
        "parity": bool(done.parity),
        "parity_worst": _or_none(done.parity_worst),
        "peak_bytes": done.peak_bytes.tolist(),
        "peak_activation_bytes": done.peak_activation_bytes.tolist(),
        "reference": done.reference,
        "started": done.started.seconds if done.started else None,
        "warm": done.started.is_warm if done.started else None,
        "recording": _or_none(done.recording),
        **size_of(done.trace),
    }


def _report(done: Run) -> str:
    unit = bytes_unit(float(done.peak_bytes.max(initial=0)))
    activations = bytes_unit(float(done.peak_activation_bytes.max(initial=0)))
    columns = {
        "peak memory": [unit.show(size) for size in done.peak_bytes],
        "peak activations": [activations.show(size) for size in done.peak_activation_bytes],
    }
    verdict = "equal those of" if done.parity else "DIFFER from those of"
    compared = "gradients" if done.trace.program.has_backward else "outputs  "
    losses = " → ".join(f"{loss:.4f}" for loss in _few(done.losses))
    resumed = f"; resumed at step {done.first_step}" if done.first_step else ""
    return (
        f"{report(done.trace, columns)}\n"
        f"loss      {losses}{resumed}\n"
        f"{compared} {verdict} {done.reference}; worst relative difference {done.parity_worst:.2g}"
        + "".join(f"\nnote      {note}" for note in done.notes)
    )


def _few(losses: list[float]) -> list[float]:
    return losses if len(losses) <= 6 else [*losses[:3], *losses[-3:]]


def _or_none(value: float) -> float | None:
    """JSON has no word for what is not a number."""
    return float(value) if math.isfinite(value) else None
