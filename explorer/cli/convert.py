"""`explorer convert`: a program or a trace from one kind of file to another; the suffixes say which."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from explorer.cli.arguments import Commands
from explorer.core import Program, Trace
from explorer.errors import InputError
from explorer.figures.units import bytes_unit
from explorer.io import load, save

_EPILOG = "example: explorer convert traces run.json.gz, which ui.perfetto.dev opens; run.html needs no other program"


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("convert", help="rewrite a trace or a program", description=__doc__, epilog=_EPILOG)
    parser.add_argument("source", metavar="FROM", help="a folder of `explorer record`, or a .json, .json.gz or .csv")
    parser.add_argument("target", metavar="TO", help="a .json, .json.gz, .csv or .csv.gz; of a trace also .html")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, and write."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        value = load(arguments.source)
        if Path(arguments.target).suffix.lower() == ".html":
            _write_page(value, arguments.target)
        else:
            save(value, arguments.target)
    for warning in told:
        sys.stderr.write(f"explorer: {warning.message}\n")
    sys.stderr.write(f"explorer: {_written(value, arguments.target)}\n")
    return 0


def _written(value: Program | Trace, target: str) -> str:
    """What is in the file now, in a line."""
    if isinstance(value, Trace):
        parts = [(value.n_ranks, "rank"), (len(value.steps), "step"), (len(value.events), "event")]
    else:
        parts = [(value.n_ranks, "rank"), (value.n_micro_batches, "micro-batch"), (value.n_actions, "action")]
    size = Path(target).stat().st_size
    return f"{target} holds {', '.join(_count(*part) for part in parts)}; {bytes_unit(size).show(size)}"


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{plural if number != 1 else ''}"


def _write_page(value: object, target: str) -> None:
    if not isinstance(value, Trace):
        raise InputError(f"a page shows a trace; got a {type(value).__name__}; try a .csv", argument="target")
    from explorer.figures import timeline_and_memory, write_html

    write_html(timeline_and_memory(value), target, title=f"{value.program.name} – Pipeline Explorer")
