"""Real text that is on every machine: the source of Python's own standard library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

# plain modules that every Python has had for long, in this order
_MODULES: tuple[str, ...] = (
    "textwrap",
    "string",
    "random",
    "statistics",
    "argparse",
    "tarfile",
    "decimal",
    "typing",
    "inspect",
)
_MODULES += ("difflib", "zipfile", "subprocess", "pickle", "calendar", "optparse", "ast", "shutil", "pdb")


def read_text(n_characters: int) -> str:
    """The first `n_characters` printable ASCII characters of some modules' source, again from the start if need be."""
    parts, have = [], 0
    for name in _MODULES:
        part = _source(name)
        parts.append(part)
        have += len(part)
        if have >= n_characters:
            break
    text = "".join(parts) or __doc__
    return (text * (n_characters // len(text) + 1))[:n_characters]


def _source(name: str) -> str:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return ""
    text = Path(found.origin).read_text(encoding="utf-8", errors="ignore")
    return "".join(character for character in text if character == "\n" or " " <= character <= "~")
