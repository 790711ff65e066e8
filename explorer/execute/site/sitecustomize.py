"""Run by Python itself at the start of every process below `explorer record -- …`, whose folder stands in PYTHONPATH.

It imports nothing heavy: once the process imports torch's pipeline schedules by itself, those are listened to. A
sitecustomize that this one hides is run as well.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

SCHEDULES = "torch.distributed.pipelining.schedules"
FOLDER, HOME = "EXPLORER_RECORD", "EXPLORER_HOME"  # where recordings go; where this package can be imported from


class _Loader(importlib.abc.Loader):
    """Loads as another does, and then attaches the recorder."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        home = os.environ.get(HOME)
        if home and home not in sys.path:
            sys.path.append(home)  # last: it only serves where the package is not installed
        try:
            from explorer.execute.auto_record import attach
        except ImportError as error:
            sys.stderr.write(f"explorer: not recorded: {error}\n")
            return
        attach(module, os.environ[FOLDER])


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for one module, and then goes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != SCHEDULES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _run_hidden() -> None:
    own = Path(__file__).resolve().parent
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get(FOLDER):
    sys.meta_path.insert(0, _Finder())
_run_hidden()
