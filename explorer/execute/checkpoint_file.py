"""Named tensors and words in one file, in the safetensors format: lengths, a table in JSON, then plain bytes.

Nothing in such a file is code, so that reading one from a stranger runs nothing. It is written here directly, for the
format is small: 8 bytes with the table's length, the table, the tensors' bytes one behind the other.

Source: huggingface/safetensors, README.md, section "Format".
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from explorer.errors import InputError

_DTYPES = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8},
    **{"U8": torch.uint8, "BOOL": torch.bool},
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LONGEST_TABLE = 100 * 2**20  # bytes, as the format's own reader has it
_LONGEST_SIDE, _MOST_SIDES = 2**40, 64  # of a shape; beyond, torch's own numbers overflow
_WORDS = "__metadata__"
_PART = ".part"  # at the end of the name of what is not whole yet
_CODE = (b"PK", *(bytes([0x80, protocol]) for protocol in range(2, 6)))  # how archives and pickles begin


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], words: Mapping[str, str]) -> None:
    """Write the file as a whole or not at all: under another name first, then renamed.

    Raises:
        InputError: if a tensor's format is not the file format's, or the folder cannot be written to.
    """
    table: dict[str, Any] = {_WORDS: dict(words)}
    begin = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise InputError(
                f"a checkpoint holds tensors of {', '.join(_NAMES.values())}; got {tensor.dtype} for {name}; "
                "convert it",
                argument="checkpoint",
            )
        end = begin + tensor.nbytes
        table[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    try:
        _replace(path, [len(header).to_bytes(8, "little"), header], tensors)
    except OSError as error:
        raise InputError(
            f"a checkpoint's folder can be written to; {path.parent} cannot: {error.strerror or error}; give another",
            argument="checkpoint",
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and words of such a file.

    Raises:
        InputError: if it is none, or has not all its bytes.
    """
    try:
        data = bytearray(_bytes_of(path))
    except OSError as error:
        raise InputError(
            f"a checkpoint is a file that can be read; {path} cannot: {error.strerror or error}; give another",
            argument="resume",
        ) from error
    table, start = _table(path, data)
    words = table.pop(_WORDS, {})
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise _foreign(path, "words that are none")
    tensors, end = {}, 0
    for name, entry in table.items():
        tensors[name], end = _tensor(path, name, entry, data, start, end)
    if start + end != len(data):
        raise _truncated(path, start + end, len(data))
    return tensors, words


def remove_parts(folder: Path) -> None:
    """Remove what runs that were killed while they saved have left: no checkpoint, and as large as one."""
    for part in folder.glob(f".step-*{_PART}"):
        part.unlink(missing_ok=True)


def _replace(path: Path, head: list[bytes], tensors: Mapping[str, torch.Tensor]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    number, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PART)
    try:
        with os.fdopen(number, "wb") as file:
            file.writelines(head)
            for tensor in tensors.values():
                file.write(_bytes(tensor))
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _bytes(tensor: torch.Tensor) -> memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def _bytes_of(path: Path) -> bytes:
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError("it is a device or a pipe")  # which may never end
    return path.read_bytes()


def _table(path: Path, data: bytearray) -> tuple[dict[str, Any], int]:
    """The table, and where the tensors begin."""
    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 2 <= length <= _LONGEST_TABLE:
        if data.startswith(_CODE):
            raise InputError(
                "a checkpoint is in the safetensors format, which holds no code; "
                f"{path.name} is an archive or a pickle, which may; save it again with execute(…, checkpoint=…)",
                argument="resume",
            )
        raise _foreign(path, "no table")
    if 8 + length > len(data):
        raise _truncated(path, 8 + length, len(data)) if data[8:9] == b"{" else _foreign(path, "no table")
    try:
        table = json.loads(data[8 : 8 + length].decode())
    except (ValueError, RecursionError) as error:
        raise _foreign(path, "a table that is no JSON") from error
    if not isinstance(table, dict):
        raise _foreign(path, "a table that is none")
    return table, 8 + length


def _tensor(path: Path, name: str, entry: Any, data: bytearray, start: int, begin: int) -> tuple[torch.Tensor, int]:
    """One tensor, which begins where the one before ended; and where it ends."""
    try:
        dtype, shape = _DTYPES[entry["dtype"]], [int(size) for size in entry["shape"]]
        first, last = (int(offset) for offset in entry["data_offsets"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"{name[:60]!r} without format, shape or place") from error
    n = math.prod(shape)
    is_shape = len(shape) <= _MOST_SIDES and all(0 <= size <= _LONGEST_SIDE for size in shape)
    if not is_shape or first != begin or last - first != n * dtype.itemsize:
        raise _damaged(path, f"{name[:60]!r} with a shape that does not fit its bytes")
    if start + last > len(data):
        raise _truncated(path, start + last, len(data))
    if not n:
        return torch.empty(0, dtype=dtype).reshape(shape), last
    return torch.frombuffer(data, dtype=torch.uint8, count=last - first, offset=start + first).clone().view(
        dtype
    ).reshape(shape), last


def _foreign(path: Path, what: str) -> InputError:
    return InputError(
        f"a checkpoint is in the safetensors format; {path.name} has {what}; give one that execute(…, checkpoint=…) "
        "wrote",
        argument="resume",
    )


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        f"a checkpoint has each tensor whole; {path.name} has {what}: it is damaged; resume from the one before",
        argument="resume",
    )


def _truncated(path: Path, wanted: int, there: int) -> InputError:
    return InputError(
        f"a checkpoint has all its bytes; {path.name} has {there:,} of {wanted:,}; resume from the one before",
        argument="resume",
    )
