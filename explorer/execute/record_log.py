"""The file in which a rank keeps its recording: a line a step, each whole once it is written.

    {"format":"recording","version":1,"unit":"ns","rank":0,"n_ranks":4,"schedule":"Schedule1F1B",…}
    {"clock":{"time":…,"seconds":0.0,"low":0.0,"high":0.0}}
    {"step":0,"trains":true,"begin":…,"end":…,"error":null,"actions":{…},"messages":{…},"memory":{…}}
    {"update":{"step":0,"begin":…,"end":…,"stage":[0],"bytes":[4096]}}

Times are whole nanoseconds of the rank's monotonic clock; within a step they count from its begin.
An update is an optimizer's step, with the stages whose parameters it holds and the bytes of those.
`explorer.io.recorded` reads them.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.errors import InputError


@functools.cache
def process_token() -> str:
    """A word that no other process has: by it a recording is known to be of this one."""
    return uuid.uuid4().hex


class Log:
    """Lines appended to a rank's file.

    A file that this very process wrote of the same schedule is continued: a training loop may open its recording for
    every epoch. One of another schedule that this process wrote is kept, and refused; one of an earlier process is
    replaced.

    Args:
        file: to write.
        header: what the first line says.

    Attributes:
        file: that is written.
        n_steps: it held when it was opened.

    Raises:
        InputError: if the file cannot be written, or holds what this process recorded of another schedule.
    """

    def __init__(self, file: Path, header: Mapping[str, Any]) -> None:
        self.file = file
        self._works, self._first = True, _line(header)
        self.n_steps = _steps_of(file, header)
        if self.n_steps:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_line(header), encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: a character that no path has
            raise InputError(
                f"a recording is kept in a folder where files can be written; got {str(file.parent)[:40]!r} "
                f"({getattr(error, 'strerror', None) or error}); try another",
                argument="path",
            ) from error

    def append(self, values: Mapping[str, Any]) -> None:
        """Put a line behind the others; where that fails, training goes on and a warning says so, once."""
        if not self._works:
            return
        try:
            with self.file.open("r+", encoding="utf-8") as file:
                if file.readline() != self._first:  # another process has begun to record here meanwhile
                    self._works = False
                    warnings.warn(f"recording ends: another run records in {self.file} now", stacklevel=2)
                    return
                file.seek(0, os.SEEK_END)
                file.write(_line(values))
        except OSError as error:
            self._works = False
            warnings.warn(f"recording ends: {self.file} cannot be written ({error.strerror})", stacklevel=2)


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"


def _steps_of(file: Path, header: Mapping[str, Any]) -> int:
    """How many steps a file holds that this process wrote with this header; 0 if it is another's.

    Raises:
        InputError: if this process wrote steps of another schedule into it.
    """
    try:
        with file.open(encoding="utf-8") as lines:
            known, ours = json.loads(next(lines, "0")), json.loads(_line(header))
            n_steps = sum('"step":' in line[:8] for line in lines)
    except (OSError, ValueError):
        return 0
    if known == ours:
        return n_steps
    if n_steps and isinstance(known, dict) and known.get("process") == ours.get("process"):
        raise InputError(
            f"a folder holds the recording of one schedule; {str(file.parent)[:40]!r} has {n_steps} steps that this "
            f"process recorded of another, {known.get('schedule')}; try another folder",
            argument="path",
        )
    return 0
