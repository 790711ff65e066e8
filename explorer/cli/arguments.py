"""What the commands read: numbers, a program and a link."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from typing import Any, NoReturn, get_args

from explorer.core import LinkSharing, Program, node_links
from explorer.errors import InputError
from explorer.schedules import schedule
from explorer.schedules.options import read_options

Commands = Any  # argparse names the type of add_subparsers' result only privately
_LARGEST, _SMALLEST = 1e100, 1e-100
_DEFAULTS: dict[str, Any] = {"schedule": "1f1b", "ranks": 4, "micro_batches": 8}
_MOST_RANKS = 4096
_MOST_PAIRS = 2_000_000  # (stage, micro-batch) pairs: about 1 GB while they are checked


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of printing and exiting."""

    def __init__(self, **options: Any) -> None:
        # an abbreviated flag that works today may be ambiguous tomorrow
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise `message` as an InputError that names the command and its help."""
        raise InputError(f"{message}; `{self.prog} --help` lists what it takes")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse here what a command does not know: the parser above it would name its own help, which has no flags."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a whole number; got {text[:40]!r}; try 4") from None


def number(text: str) -> float:
    """A number neither too small nor too large to be added up and divided by."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a number; got {text[:40]!r}; try 1.0") from None
    if _LARGEST < value < math.inf or 0 < value < _SMALLEST:
        raise argparse.ArgumentTypeError(
            f"needs 0, or a number from {_SMALLEST:g} to {_LARGEST:g}; got {text[:40]!r}; try 1.0"
        )
    return value


def add_program(parser: argparse.ArgumentParser) -> None:
    """The flags that choose a program."""
    parser.add_argument("--schedule", metavar="NAME", help=f"as in `explorer schedules` ({_DEFAULTS['schedule']})")
    parser.add_argument("--ranks", type=whole, metavar="P", help=f"pipeline ranks ({_DEFAULTS['ranks']})")
    parser.add_argument(
        "--micro-batches", type=whole, metavar="M", help=f"micro-batches in a step ({_DEFAULTS['micro_batches']})"
    )
    parser.add_argument("--chunks", type=whole, metavar="N", help="stages a rank (the fewest the schedule has)")
    parser.add_argument(
        "--option", action="append", metavar="NAME=VALUE", help="a further argument of the schedule, like warm_up=6"
    )


def add_order(parser: argparse.ArgumentParser) -> None:
    """The flag that reads a program from a file, in place of those that choose one."""
    parser.add_argument("--program", metavar="FILE", help="an order as .csv, such as torch writes it")


def add_link(parser: argparse.ArgumentParser) -> None:
    """The flags of the links between ranks."""
    parser.add_argument("--latency", type=number, default=0.0, metavar="S", help="seconds of an empty message (0)")
    parser.add_argument("--bandwidth", type=number, default=float("inf"), metavar="B", help="bytes a second (no limit)")


def add_nodes(parser: argparse.ArgumentParser) -> None:
    """The flags of links that ranks share."""
    parser.add_argument(
        "--ranks-per-node",
        type=whole,
        default=0,
        metavar="N",
        help="ranks that share a node's way out and way in; 0: no message hinders another (0)",
    )
    parser.add_argument(
        "--sharing", choices=get_args(LinkSharing), default="fair", help="how messages share a link (fair)"
    )


def links_of(arguments: argparse.Namespace, n_ranks: int) -> dict[str, Any]:
    """What the flags of links say of `n_ranks`, as arguments of Costs.

    Raises:
        InputError: if a node would have fewer than no ranks.
    """
    a_node = arguments.ranks_per_node
    if a_node < 0:
        raise InputError(f"--ranks-per-node is a whole number of at least 0; got {a_node}; try 8")
    return {
        "latency": arguments.latency,
        "bandwidth": arguments.bandwidth,
        "links": node_links(n_ranks, ranks_per_node=a_node) if a_node else None,
        "sharing": arguments.sharing,
    }


def add_checkpoints(parser: argparse.ArgumentParser) -> None:
    """The flags that save a training and go on with it."""
    parser.add_argument("--checkpoint", metavar="FOLDER", help="save the training's state there after a step")
    parser.add_argument("--every", type=whole, metavar="N", help="steps from one checkpoint to the next (1)")
    parser.add_argument("--keep-last", type=whole, metavar="K", help="checkpoints that stay (3)")
    parser.add_argument(
        "--resume",
        metavar="FOLDER",
        help="go on from the latest checkpoint there, or from that file, at any ranks, chunks and schedule; "
        "a ready model needs the same --layers",
    )


def checkpoints_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the flags of checkpoints say, as arguments of execute.

    Raises:
        InputError: if they say how to save, and not where.
    """
    given = {name: getattr(arguments, name) for name in ("checkpoint", "every", "keep_last", "resume")}
    found = {name: value for name, value in given.items() if value is not None}
    how = next((name for name in ("every", "keep_last") if name in found), None)
    if how is not None and arguments.checkpoint is None:
        flag = f"--{how.replace('_', '-')}"
        raise InputError(
            f"{flag} is of checkpoints, which go where --checkpoint says; got {flag} {found[how]} alone; add "
            "--checkpoint checkpoints/"
        )
    return found


def add_output(parser: argparse.ArgumentParser) -> None:
    """The flags that say what to give out."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--html", metavar="FILE", help="also write timeline and memory as one offline page")


def program_of(arguments: argparse.Namespace) -> Program:
    """The program that the flags choose, or the file they name.

    Raises:
        ScheduleError: if the schedule does not exist for these numbers.
        InputError: if the program would be too large for a command, or the file holds none.
        ProgramError: if the file's program is incomplete or cannot finish.
    """
    if getattr(arguments, "program", None) is not None:
        return _from_file(arguments)
    for name, value in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check_size(arguments.ranks, arguments.micro_batches, arguments.chunks)
    options: dict[str, Any] = dict(read_options(",".join(arguments.option or [])))
    return schedule(
        arguments.schedule,
        n_ranks=arguments.ranks,
        n_micro_batches=arguments.micro_batches,
        n_chunks=arguments.chunks,
        **options,
    )


def check_size(n_ranks: int, n_micro_batches: int, n_chunks: int | None) -> None:
    """Refuse a program that would be too large for a command.

    Raises:
        InputError: saying how large it may be.
    """
    if n_ranks > _MOST_RANKS:
        raise InputError(f"a command lays out at most {_MOST_RANKS} ranks; got {n_ranks}; try fewer")
    pairs = n_ranks * n_micro_batches * (1 if n_chunks is None else n_chunks)
    if pairs > _MOST_PAIRS:
        raise InputError(
            f"a command lays out at most {_MOST_PAIRS} pairs of stage and micro-batch; got {pairs}; "
            "try fewer ranks, micro-batches or chunks"
        )


def _from_file(arguments: argparse.Namespace) -> Program:
    from explorer.io import load

    given = [name for name in (*_DEFAULTS, "chunks", "option") if getattr(arguments, name) is not None]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise InputError(f"--program names the whole order, so nothing else chooses one; got {flag} too; leave it out")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        loaded = load(arguments.program)
    for warning in told:
        sys.stderr.write(f"explorer: {warning.message}\n")
    return loaded if isinstance(loaded, Program) else loaded.program
