"""The file in which a rank keeps its recording: a line a step, each whole once it is written.

    {"format":"recording","version":1,"unit":"ns","rank":0,"n_ranks":4,"schedule":"Schedule1F1B",…}
    {"clock":{"time":…,"seconds":0.0,"low":0.0,"high":0.0}}
    {"step":0,"trains":true,"begin":…,"end":…,"error":null,"actions":{…},"messages":{…},"memory":{…}}

Times are whole nanoseconds of the rank's monotonic clock; within a step they count from its begin.
`explorer.io.recorded` reads them.
"""

from __future__ import annotations

import functools
import json
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
    every epoch. Any other is replaced.

    Args:
        file: to write.
        header: what the first line says.

    Attributes:
        file: that is written.
        n_steps: it held when it was opened.

    Raises:
        InputError: if the file cannot be written.
    """

    def __init__(self, file: Path, header: Mapping[str, Any]) -> None:
        self.file = file
        self._works = True
        self.n_steps = _steps_of(file, header)
        if self.n_steps:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_line(header), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"a recording is kept in a folder where files can be written; got {str(file.parent)!r} "
                f"({error.strerror}); try another",
                argument="path",
            ) from error

    def append(self, values: Mapping[str, Any]) -> None:
        """Put a line behind the others; where that fails, training goes on and a warning says so, once."""
        if not self._works:
            return
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(_line(values))
        except OSError as error:
            self._works = False
            warnings.warn(f"recording ends: {self.file} cannot be written ({error.strerror})", stacklevel=2)


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"


def _steps_of(file: Path, header: Mapping[str, Any]) -> int:
    """How many steps a file holds that this process wrote with this header; 0 if it is another's."""
    try:
        with file.open(encoding="utf-8") as lines:
            if json.loads(next(lines, "0")) != json.loads(_line(header)):
                return 0
            return sum('"step":' in line[:8] for line in lines)
    except (OSError, ValueError):
        return 0
