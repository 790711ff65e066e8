"""The command `explorer`: one command a file; errors become one sentence and an exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from explorer.cli import execute, lab, schedules, simulate
from explorer.cli.arguments import Parser
from explorer.errors import ExplorerError, RunError

FAILED, REFUSED, INTERRUPTED = 1, 2, 130

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `argv`, without the program's name; None for the process's own.

    Returns:
        0; 1 if a run failed on its way; 2 if what was asked for cannot be; 130 after Ctrl-C.
    """
    _print_what_the_terminal_can()
    try:
        arguments = _parser().parse_args(argv)
        status: int = arguments.command(arguments)
        sys.stdout.flush()
    except ExplorerError as error:
        sys.stderr.write(f"explorer: {' '.join(str(error).split())}\n")
        return FAILED if isinstance(error, RunError) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read the output has gone; nothing more may be written to it, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


def _parser() -> Parser:
    parser = Parser(prog="explorer", description="See, predict and really run pipeline-parallel training.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in (simulate, execute, schedules, lab):
        command.add(commands)
    return parser


def _print_what_the_terminal_can() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
