"""Files that workers have imported modules of the caller's from: once one has changed, its workers are of no use."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Collection, Mapping
from pathlib import Path

_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def imported_since(modules: Collection[str]) -> dict[str, int]:
    """File → when it was written, in ns, of what was imported besides `modules` and what is installed."""
    files = {}
    for name in sys.modules.keys() - set(modules):
        file = getattr(sys.modules[name], "__file__", None)
        if file and not file.startswith(_INSTALLED):
            files[file] = _written(file)
    return files


class Seen:
    """Files and when they were written."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def add(self, files: Mapping[str, int]) -> None:
        """Take these in; what is known already stays as it is."""
        self._files = {**files, **self._files}

    def have_changed(self) -> bool:
        """Whether one has been written to since, or is gone."""
        return any(_written(file) != written for file, written in self._files.items())


def _written(file: str) -> int:
    """When a file was written, in ns; −1 if it is not there."""
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return -1
