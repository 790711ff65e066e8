"""The flags of memory and messages, and what they say of costs."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.cli.arguments import number


def size(text: str) -> float:
    """Bytes, as a plain number."""
    try:
        float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"needs bytes as a plain number; got {text[:40]!r}; try 80e9 for 80 GB"
        ) from None
    return number(text)


def add_bytes(parser: argparse.ArgumentParser, *, of: str) -> None:
    """The flags of memory and messages, `of` a stage or a rank, and of what a device has."""
    for name, what in (
        ("message", "of a message"),
        ("activation", f"that a micro-batch keeps on a {of}"),
        ("parameter", f"of a {of}'s parameters; gradients are as large"),
        ("optimizer", f"that the optimizer keeps for a {of}"),
    ):
        parser.add_argument(f"--{name}-bytes", type=size, default=0.0, metavar="B", help=f"bytes {what} (0)")
    parser.add_argument("--memory-limit", type=size, metavar="B", help="bytes of a rank, for everything (none)")


def bytes_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the flags of memory and messages say, as arguments of Costs."""
    names = ("message_bytes", "activation_bytes", "parameter_bytes", "optimizer_bytes")
    return {name: getattr(arguments, name) for name in names}
