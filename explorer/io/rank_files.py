"""The files of a recording, one a rank, read line by line; what each line holds is said in explorer.execute.record_log.

What comes from a file is a stranger's: every number is checked to be within its range.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Category, Kind
from explorer.core.clocks import ClockOffset, Comparison
from explorer.errors import ExplorerError, InputError
from explorer.io.columns import read_column, read_whole, unlike
from explorer.io.contents import read_text

VERSION = 1
PATTERN = "rank-*.jsonl"
_LARGEST = 1024 * 2**20  # bytes of a file
_MOST = 2**31 - 1
_MOST_RANKS = 65_536
_LATEST = 2**62  # nanoseconds
_ACTIONS = ("start", "end")
_MOMENTS = ("posted", "wanted", "got")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StepLine:
    """A step as one rank has it. Columns are int64; times are nanoseconds of the rank's own clock.

    Attributes:
        number: of the step.
        trains: whether it had backwards.
        error: what ended it too early, or None.
        actions: kind, stage, micro_batch, start and end of each action, in the order they ran.
        messages: kind, stage, micro_batch, peer, bytes, posted, wanted and got of each message; −1 = it never was.
        memory: action, at_end, category, stage, micro_batch and delta of each change.
    """

    number: int
    trains: bool
    error: str | None
    actions: Mapping[str, Ints]
    messages: Mapping[str, Ints]
    memory: Mapping[str, Ints]


class UpdateLine(NamedTuple):
    """An optimizer's step as one rank has it. Times are nanoseconds of the rank's own clock.

    Attributes:
        step: that it belongs to.
        begin: of it.
        end: of it.
        stage: (n_stages,) whose parameters it holds.
        bytes: (n_stages,) of those.
    """

    step: int
    begin: int
    end: int
    stage: Ints
    bytes: Ints


@dataclass(frozen=True)
class RankFile:
    """What one rank has recorded.

    Attributes:
        name: of the file.
        header: its first line.
        comparisons: of its clock with rank 0's; empty where the ranks could not compare theirs.
        steps: by number.
        updates: of optimizers, in their order.
    """

    name: str
    header: Mapping[str, Any]
    comparisons: Sequence[Comparison]
    steps: Mapping[int, StepLine]
    updates: Sequence[UpdateLine]

    @property
    def rank(self) -> int:
        """Of the pipeline."""
        return int(self.header["rank"])


def read_rank_file(file: Path) -> RankFile:
    """One rank's recording. A last line that is broken off is left out, and a warning says so.

    Raises:
        InputError: if it is no such file, or something in it cannot be; it names the line.
    """
    text = read_text(file, largest=_LARGEST, advice="a recording of fewer steps")
    lines = text.split("\n")
    unfinished = lines.pop()  # nothing, if the last line is whole
    header: Mapping[str, Any] = {}
    comparisons: list[Comparison] = []
    steps: dict[int, StepLine] = {}
    updates: list[UpdateLine] = []
    for number, line in enumerate(lines, 1):
        try:
            values = _object(line)
            if number == 1:
                header = _header(values)
            elif "clock" in values:
                comparisons += _comparison(values["clock"])
            elif "step" in values:
                step = _step(values, header)
                steps[step.number] = step
            elif "update" in values:
                updates.append(_update(values["update"], header))
        except ExplorerError as error:
            error.args = (f"{file.name}, line {number}: {error}",)
            raise
    if not header:
        raise InputError(f"{file.name}: a recording begins with a line about its rank; got none", argument="path")
    if unfinished:
        warnings.warn(f"{file.name}: its last line is broken off and left out; it has {len(steps)} steps", stacklevel=5)
    return RankFile(file.name, header, comparisons, steps, updates)


def _object(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(f"a line is a JSON object; got {line[:40]!r}", argument="path")
    return values


def _header(values: dict[str, Any]) -> dict[str, Any]:
    if values.get("format") != "recording":
        raise unlike("format", "'recording'", values.get("format"))
    if read_whole(values.get("version"), "version", low=1, high=_MOST) > VERSION:
        raise InputError(f"this explorer reads recordings up to version {VERSION}; got {values['version']}")
    n_ranks = read_whole(values.get("n_ranks"), "n_ranks", low=1, high=_MOST_RANKS)
    read_whole(values.get("rank"), "rank", low=0, high=n_ranks - 1)
    read_whole(values.get("n_micro_batches"), "n_micro_batches", low=1, high=_MOST)
    read_whole(values.get("n_stages"), "n_stages", low=1, high=_MOST)
    read_column(values.get("group"), "group", "int64", length=n_ranks, low=0)
    for name in ("schedule", "clock", "run"):
        if not isinstance(values.get(name), str):
            raise unlike(name, "a text", values.get(name))
    return values


def _comparison(values: object) -> Iterable[Comparison]:
    if values is None:
        return
    if not isinstance(values, dict):
        raise unlike("clock", "an object or null", values)
    time, *offset = (values.get(name) for name in ("time", *ClockOffset._fields))
    numbers = read_column([time, *offset], "clock", "float64", low=-1e18, high=1e18).tolist()
    yield Comparison(numbers[0] * 1e-9, ClockOffset(*numbers[1:]))


def _step(values: dict[str, Any], header: Mapping[str, Any]) -> StepLine:
    number = read_whole(values.get("step"), "step", low=0, high=_MOST)
    begin = read_whole(values.get("begin"), "begin", low=0, high=_LATEST)
    error = values.get("error")
    actions, messages, memory = (_table(values, name) for name in ("actions", "messages", "memory"))
    highs = {
        "stage": header["n_stages"] - 1,
        "micro_batch": header["n_micro_batches"] - 1,
        "peer": header["n_ranks"] - 1,
    }
    return StepLine(
        number,
        values.get("trains") is True,
        error[:200] if isinstance(error, str) else None,
        _columns(actions, {"stage": 0, "micro_batch": -1}, highs, _ACTIONS, begin),
        _columns(messages, {"stage": 0, "micro_batch": 0, "peer": 0, "bytes": 0}, highs, _MOMENTS, begin),
        _memory(memory, highs, len(actions.get("kind", ()))),
    )


def _update(values: object, header: Mapping[str, Any]) -> UpdateLine:
    if not isinstance(values, dict):
        raise unlike("update", "an object", values)
    number = read_whole(values.get("step"), "step", low=0, high=_MOST)
    begin = read_whole(values.get("begin"), "begin", low=0, high=_LATEST)
    end = read_whole(values.get("end"), "end", low=begin, high=_LATEST)
    stages = values.get("stage")
    length = len(stages) if isinstance(stages, list) else 0
    stage = read_column(stages, "stage", "int64", length=length, low=0, high=header["n_stages"] - 1)
    size = read_column(values.get("bytes"), "bytes", "int64", length=length, low=0, high=2**60)
    return UpdateLine(number, begin, end, stage, size)


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    table = values.get(name)
    if not isinstance(table, dict) or not all(isinstance(column, list) for column in table.values()):
        raise unlike(name, "an object of lists", table)
    return table


def _columns(
    table: dict[str, Any], lows: Mapping[str, int], highs: Mapping[str, int], times: Iterable[str], begin: int
) -> dict[str, Ints]:
    kinds = table.get("kind", [])
    columns = {"kind": _codes(kinds, "kind", Kind.__members__)}
    n = len(kinds)
    for name, low in lows.items():
        columns[name] = read_column(
            table.get(name), name, "int64", length=n, low=low, high=highs.get(name, float(_LATEST))
        )
    for name in times:
        absent = [time is None for time in table.get(name, [])]
        filled = [0 if time is None else time for time in table.get(name, [])]
        column = read_column(filled, name, "int64", length=n, low=-_LATEST / 2, high=_LATEST / 2)
        columns[name] = np.where(absent, -1, column + begin)
    return columns


def _memory(table: dict[str, Any], highs: Mapping[str, int], n_actions: int) -> dict[str, Ints]:
    category = _codes(table.get("category", []), "category", Category.__members__)
    columns = {"category": category}
    limits = {
        "action": (-1, n_actions - 1),
        "stage": (-1, highs["stage"]),
        "micro_batch": (-1, highs["micro_batch"]),
        "delta": (-(2**60), 2**60),
    }
    for name, (low, high) in limits.items():
        columns[name] = read_column(table.get(name), name, "int64", length=len(category), low=low, high=high)
    at_end = table.get("at_end", [])
    if len(at_end) != len(category) or not all(isinstance(one, bool) for one in at_end):
        raise unlike("at_end", "a list of true and false", at_end)
    columns["at_end"] = np.array(at_end, np.int64)
    return columns


def _codes(words: list[Any], name: str, members: Mapping[str, Any]) -> Ints:
    try:
        return np.array([members[word] for word in words], np.int64)
    except (KeyError, TypeError):
        raise InputError(f"{name} is one of {', '.join(members)}; got another", argument="path") from None
