"""Recording every pipeline schedule of a process, with no line in its script: what `explorer record -- …` attaches."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from explorer.errors import ExplorerError

_CLASSES = ("PipelineScheduleSingle", "PipelineScheduleMulti")


def attach(schedules: ModuleType, folder: str) -> None:
    """Record each schedule from its first step on: the first in `folder`, further ones in folders within it.

    What keeps a recording from being made is said in one line; the training goes on.

    Args:
        schedules: torch's module.
        folder: for the recordings.
    """
    attached: list[Any] = []
    open_ones = contextlib.ExitStack()
    atexit.register(open_ones.close)

    def cover(original: Any) -> Any:
        @functools.wraps(original)
        def step(self: Any, *arguments: Any, **named: Any) -> Any:
            if any(one is self for one in attached):
                return original(self, *arguments, **named)
            attached.append(self)
            _open(open_ones, folder, len(attached), self)
            return self.step(*arguments, **named)  # covered, if all went well

        return step

    for name in _CLASSES:
        made = getattr(schedules, name, None)
        if made is not None:
            made.step = cover(made.step)


def _open(open_ones: contextlib.ExitStack, folder: str, number: int, schedule: Any) -> None:
    from explorer.execute.recording import record

    place = Path(folder) if number == 1 else Path(folder) / f"schedule-{number}"
    try:
        open_ones.enter_context(record(place, schedule))
    except ExplorerError as error:
        sys.stderr.write(f"explorer: not recorded: {' '.join(str(error).split())}\n")
