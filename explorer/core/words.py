"""Many actions read from text at once, as columns: no object for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from explorer.core.action import ACTION_PATTERN, Kind, parse_slot
from explorer.core.placement import Placement
from explorer.core.program import Program
from explorer.errors import InputError

Refuse = Callable[[int, int], InputError]
MOST_RANKS = 65_536  # of an order in text or a table

_ACTION = re.compile(ACTION_PATTERN)
_LINE = re.compile(rf"^{ACTION_PATTERN}$", re.MULTILINE)
_GROUP = re.compile(r"\(([^()]*)\)(?:OVERLAP_F_B)?")
_CODE = {kind.name: int(kind) for kind in Kind}


def program_of_words(name: str, rows: Sequence[Sequence[str]], refuse: Refuse) -> Program:
    """The program with these slots as text, a row a rank, not yet checked; its placement is still to be inferred.

    Args:
        name: of the program.
        rows: ``2F5``, ``(2F1;1B0)`` … in order.
        refuse: the error for the word at a row and a place in it, which names no action.

    Raises:
        InputError: what `refuse` gives.
    """
    words = list(chain.from_iterable(rows))
    parts, lengths = _parts(words)
    text = "\n".join(parts)
    found = _LINE.findall(text)
    if len(found) != len(parts) or text.count("\n") != max(len(parts) - 1, 0):
        raise refuse(*_first_unread(rows))
    stage, computation, message, micro_batch, segment, peer = zip(*found, strict=True) if found else ((),) * 6
    kind = map(_CODE.__getitem__, map(str.__add__, computation, message))  # one of the two is empty
    return Program(
        name=name,
        placement=Placement.looped(len(rows)),
        n_micro_batches=1,
        kind=np.fromiter(kind, np.int8, len(found)),
        stage=_numbers(stage, 0),
        micro_batch=_numbers(micro_batch, -1),
        segment=_numbers(segment, 0),
        peer=_numbers(peer, -1),
        slot_offsets=_offsets(lengths),
        rank_offsets=_offsets([len(row) for row in rows]),
    )


def _parts(words: list[str]) -> tuple[list[str], list[int]]:
    """The actions of all slots as text, and how many each slot has."""
    if "(" not in "".join(words):
        return words, [1] * len(words)
    groups = [found[1].split(";") if (found := _GROUP.fullmatch(word)) else [word] for word in words]
    return [part.strip() for part in chain.from_iterable(groups)], [len(group) for group in groups]


def _first_unread(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    for number, row in enumerate(rows):
        for place, word in enumerate(row):
            if _ACTION.fullmatch(word):  # what nearly all are, and quicker
                continue
            try:
                parse_slot(word)
            except InputError:
                return number, place
    raise AssertionError("one of the words was not read")


def _numbers(texts: Sequence[str], absent: int) -> npt.NDArray[np.int32]:
    """The column that `texts` write; nothing is `absent`."""
    if not any(texts):
        return np.full(len(texts), absent, np.int32)
    if not all(texts):
        texts = [text or str(absent) for text in texts]
    return np.fromiter(map(int, texts), np.int32, len(texts))


def _offsets(lengths: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)
