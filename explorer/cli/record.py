"""`explorer record`: run a training command and record its pipeline schedules, with no change to its script."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from explorer.cli.arguments import Commands
from explorer.errors import InputError

_EPILOG = "example: explorer record --output traces -- torchrun --nproc-per-node 4 train.py"
_FILES = "rank-*.jsonl"
_SIGNALLED = 128  # a shell's status for a command ended by signal n is 128 + n


def add(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser("record", help="record a run of torchrun", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--output", default="traces", metavar="FOLDER", help="for a file a rank (traces)")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; its own exit status."""
    command, folder = list(arguments.passed_on), Path(arguments.output).absolute()
    if not command:
        raise InputError(f"record runs the command that stands behind --; got none; {_EPILOG}")
    there = list(folder.glob(_FILES)) if folder.is_dir() else []
    if there:
        raise InputError(
            f"record writes to a folder without a recording; got {arguments.output!r}, in which {there[0].name} is; "
            "try another --output",
            argument="output",
        )
    _make(folder, arguments.output)
    try:
        status = _run(command, surroundings(folder, os.environ))
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # where nothing was recorded, it is empty
    _tell(folder, arguments.output)
    return status if status >= 0 else _SIGNALLED - status


def _make(folder: Path, output: str) -> None:
    """Make the folder, or refuse one that cannot be written to: else the training would run for hours, unrecorded."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
        came = f"{output!r}, which may not be written to"
    except FileExistsError:
        came = f"{output!r}, which is a file"
    except OSError as error:
        came = f"{output!r}, which cannot be made ({error.strerror})"
    raise InputError(f"record writes to a folder; got {came}; try another --output", argument="output")


def surroundings(folder: Path, present: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """The environment in which Python attaches the recorder by itself: see explorer/execute/site."""
    package = Path(__file__).resolve().parent.parent
    paths = [str(package / "execute" / "site"), *filter(None, [present.get("PYTHONPATH")])]
    added = {
        "PYTHONPATH": os.pathsep.join(paths),
        "EXPLORER_RECORD": str(folder),
        "EXPLORER_HOME": str(package.parent),
    }
    return {**present, **added}


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise InputError(
            f"record runs a command that can be started; got {command[0]!r} ({error.strerror}); try torchrun train.py"
        ) from error

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the terminal has told the command too; it ends as it likes
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(folder: Path, output: str) -> None:
    n_ranks = len(list(folder.glob(_FILES))) if folder.is_dir() else 0
    said = (
        f"{n_ranks} ranks are recorded in {output}; `explorer convert {output} run.json.gz` makes a file for Perfetto"
        if n_ranks
        else "nothing is recorded: the command ran no step of a torch.distributed.pipelining schedule"
    )
    sys.stderr.write(f"explorer: {said}\n")
