"""What a rank can do: one Action, and the Overlap of several begun together."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.errors import InputError


class Kind(IntEnum):
    """The kinds of action, with torch's letters.

    Papers on zero-bubble schedules write B for what is I here; they are translated at the door.
    """

    F = 0  # forward
    B = 1  # backward, for inputs and weights at once
    I = 2  # noqa: E741  backward for inputs; the field's own letter
    W = 3  # backward for weights
    R = 4  # forward again, to rebuild activations that were not kept
    SEND_F = 5  # this stage's activation, to the next stage
    RECV_F = 6  # this stage's input, from the stage before
    SEND_B = 7  # the gradient of this stage's input, to the stage before
    RECV_B = 8  # the gradient of this stage's activation, from the next stage
    G = 9  # gradient reduction among the copies of a stage
    U = 10  # optimizer update


COMPUTE_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)
MESSAGE_KINDS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
PER_STAGE_KINDS = (Kind.G, Kind.U)  # once a stage, not once a micro-batch: micro_batch is −1

# nine digits fit the columns of a program; longer numbers and foreign digits are typing errors
_NUMBER = "([0-9]{1,9})"


def among(kind: npt.NDArray[np.int8], *kinds: Kind) -> npt.NDArray[np.bool_]:
    """(n,) whether each kind is one of `kinds`: np.isin for the few there are, by a table."""
    table = np.zeros(len(Kind), np.bool_)
    table[list(kinds)] = True
    return table.take(kind)


# stage, kind of computation or of message, micro-batch, segment, and of messages the rank at the other end
ACTION_PATTERN = rf"{_NUMBER}(?:([FBIWRGU])|((?:SEND|RECV)_[FB])){_NUMBER}?(?:\.{_NUMBER})?(?(3)(?:@{_NUMBER})?)"
_TEXT = re.compile(ACTION_PATTERN)
_GROUP = re.compile(r"\(([^()]*)\)(?:OVERLAP_F_B)?")
_KINDS = {kind.name: kind for kind in Kind}  # several times as fast to look up as Kind itself
_SHOWN = 40  # characters of what came


class Action(NamedTuple):
    """One thing a rank does for one stage and one micro-batch.

    It knows nothing of rank, time, colour or cost. As text it reads `<stage><kind><micro-batch>`, with
    `.<segment>` behind it where the sequence is cut: ``2F5`` is the forward of micro-batch 5 on stage 2. A message to
    or from another rank than that of the next stage names it last: ``2SEND_F5@7``.
    """

    kind: Kind
    stage: int
    micro_batch: int = -1
    segment: int = 0
    peer: int = -1  # the rank at the other end, for messages

    def __str__(self) -> str:
        micro_batch = "" if self.micro_batch < 0 else str(self.micro_batch)
        segment = f".{self.segment}" if self.segment else ""
        return f"{self.stage}{self.kind.name}{micro_batch}{segment}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """The action that `text` names.

        Raises:
            InputError: if `text` is not of the form ``2F5``, ``2F5.1`` or ``2SEND_F5@7``.
        """
        found = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            came = f"{text[:_SHOWN]!r}" if isinstance(text, str) else f"{type(text).__name__}"
            raise InputError(
                f"an action reads <stage><kind><micro-batch>, like 2F5; got {came}; the kinds are "
                f"{', '.join(kind.name for kind in Kind)}, and numbers have up to nine digits"
            )
        stage, computation, message, micro_batch, segment, peer = found.groups()
        kind = _KINDS[computation or message]
        return cls(kind, int(stage), int(micro_batch or -1), int(segment or 0), int(peer or -1))


class Overlap(tuple[Action, ...]):
    """Actions begun together in one slot: a forward run together with a backward, or a group of messages."""

    __slots__ = ()

    def __str__(self) -> str:
        return "(" + ";".join(map(str, self)) + ")"

    @property
    def micro_batches(self) -> tuple[int, ...]:
        """The micro-batch of each part."""
        return tuple(action.micro_batch for action in self)


def parse_slot(text: str) -> Action | Overlap:
    """What a slot written as text holds: an action, or several begun together, ``(2F1;1B0)``.

    Torch's ending ``OVERLAP_F_B`` may follow the bracket; it adds nothing.

    Raises:
        InputError: if a part does not name an action, or a bracket is empty.
    """
    group = _GROUP.fullmatch(text.strip()) if isinstance(text, str) and "(" in text else None
    if group is None:
        return Action.parse(text)
    return Overlap([Action.parse(part) for part in group[1].split(";")])
