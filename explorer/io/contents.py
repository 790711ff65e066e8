"""Files as text, read and written within limits; `.gz` behind a suffix means compressed."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path

from explorer.errors import InputError

_QUICK = 3  # of gzip's levels 1 to 9: nearly as small as the best, in a third of the time


def as_path(path: object) -> Path:
    """`path`, if it can name a file.

    Raises:
        InputError: if it cannot.
    """
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        came = "an empty one" if path == "" else type(path).__name__
        raise InputError(f"a file is named by a path; got {came}; try 'order.csv'", argument="path")
    return Path(path)


def suffix_of(file: Path) -> str:
    """The suffix that says how it is written, without `.gz`."""
    return Path(file.stem).suffix.lower() if is_compressed(file) else file.suffix.lower()


def is_compressed(file: Path) -> bool:
    """Whether its name ends in `.gz`."""
    return file.suffix.lower() == ".gz"


def read_text(file: Path, *, largest: int, advice: str) -> str:
    """The text of a file.

    Args:
        file: to read.
        largest: bytes it may have, also when no longer compressed.
        advice: what to do with a larger one.

    Raises:
        InputError: if it is not there, too large, no text, or broken.
    """
    try:
        about = file.stat()
        _check_ordinary(file, about.st_mode)
        _check_size(file, about.st_size, largest, advice)
        return _bytes(file, largest, advice).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"an order or a trace is text in UTF-8; got other bytes in {file.name!r}; export it again", argument="path"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"a file that ends in .gz is whole and compressed; got {file.name!r} ({error}); copy or save it again",
            argument="path",
        ) from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"a file must be there to be read; got {str(file)!r} ({reason}); try another path", argument="path"
        ) from error


def _check_ordinary(file: Path, mode: int) -> None:
    """Refuse what is no file with an end: a pipe may never give anything, and a device gives for ever.

    Raises:
        InputError: by its mode, as `os.stat` gives it.
    """
    if not stat.S_ISREG(mode):
        raise InputError(
            f"what is loaded is an ordinary file; got {str(file)!r}, which is a pipe, a device or the like; copy what "
            "it gives into a file",
            argument="path",
        )


def _bytes(file: Path, largest: int, advice: str) -> bytes:
    if not is_compressed(file):
        return file.read_bytes()
    with gzip.open(file) as compressed:
        content = compressed.read(largest + 1)  # a small file may become any size
    _check_size(file, len(content), largest, advice)
    return content


def _check_size(file: Path, size: int, largest: int, advice: str) -> None:
    if size > largest:
        amount = f"{size >> 20} MiB" if size >> 20 > largest >> 20 else "more"
        raise InputError(
            f"a file has at most {largest >> 20} MiB; got {file.name!r} with {amount}; try {advice}",
            argument="path",
        )


def write_text(file: Path, parts: Iterable[str]) -> None:
    """Write a file, or replace it once the new one is whole.

    Raises:
        InputError: if it cannot be written there.
    """
    unfinished = file.with_name(f"{file.name}.part")
    try:
        with unfinished.open("wb") as raw:
            if is_compressed(file):
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_QUICK, mtime=0) as compressed:
                    compressed.writelines(part.encode() for part in parts)
            else:
                raw.writelines(part.encode() for part in parts)
        unfinished.replace(file)
    except (OSError, ValueError) as error:
        unfinished.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"a file is saved where files can be written; got {str(file)!r} ({reason}); try another folder",
            argument="path",
        ) from error
