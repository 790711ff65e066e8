"""The command `explorer`: one command a file; errors become one sentence and an exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.errors import ExplorerError, RunError

if TYPE_CHECKING:
    from explorer.cli.arguments import Parser

FAILED, REFUSED, INTERRUPTED = 1, 2, 130
_HELP = ("-h", "--help")

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `argv`, without the program's name; None for the process's own.

    Returns:
        0; 1 if a run failed on its way; 2 if what was asked for cannot be; 130 after Ctrl-C.
    """
    _print_what_the_terminal_can()
    try:
        words, passed_on = _at_dashes(list(sys.argv[1:] if argv is None else argv))
        arguments = _parser().parse_args(words)
        arguments.passed_on = passed_on
        status: int = arguments.command(arguments)
        sys.stdout.flush()
    except ExplorerError as error:
        _tell(" ".join(str(error).split()))
        return FAILED if isinstance(error, RunError) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # of the output: whoever read it has gone, or its disk is full; nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"explorer: the output cannot be written ({error.strerror}); write it elsewhere\n")
        return FAILED
    return status


def _tell(message: str) -> None:
    """Say it, unless torchrun has started this command several times and the first of them says the same."""
    is_first = os.environ.get("RANK", "0") == "0"
    if is_first:  # at once, since the others only ask it
        sys.stderr.write(f"explorer: {message}\n")
        sys.stderr.flush()
    is_told = os.environ.get("WORLD_SIZE", "1") != "1" and _is_told(message)
    if not is_first and not is_told:
        sys.stderr.write(f"explorer: {message}\n")


def _is_told(message: str) -> bool:
    from explorer.execute.speaking import is_told_by_first

    return is_told_by_first(message)


def _at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and what `lab` and `record` pass on: all behind the first `--`; of `lab` options without it too."""
    if words[:1] not in (["lab"], ["record"]):
        return words, []
    is_lab = words[0] == "lab"
    foreign = (
        place
        for place, word in enumerate(words)
        if word == "--" or (is_lab and word.startswith("-") and word not in _HELP)
    )
    place = next(foreign, len(words))
    return words[:place], words[place + (words[place : place + 1] == ["--"]) :]


def _parser() -> Parser:
    """The parser; with it come the imports, which Ctrl-C may then interrupt without a traceback."""
    from explorer.cli import compare, convert, execute, lab, record, schedules, simulate
    from explorer.cli.arguments import Parser

    parser = Parser(prog="explorer", description="See, predict and really run pipeline-parallel training.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in (simulate, execute, compare, schedules, record, convert, lab):
        command.add(commands)
    return parser


def _print_what_the_terminal_can() -> None:
    if sys.stdout is None:  # closed by whoever called; what is printed goes nowhere
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
