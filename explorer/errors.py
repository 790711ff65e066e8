"""Every error this package raises on purpose.

    ExplorerError
    ├── InputError       (ValueError)    a number, name or file that cannot be
    │   ├── ScheduleError                a schedule that does not exist for these numbers
    │   ├── CostError                    a cost that is negative, not finite or of the wrong shape
    │   └── ModelError                   a model that cannot be cut into these stages, or does not fit its batch
    ├── ProgramError     (ValueError)    an order that is incomplete, doubled or misplaced
    │   └── CircularWaitError            an order whose actions wait for each other in a circle
    ├── RunError         (RuntimeError)  a run that failed on its way
    │   ├── RunStopped                   … because somebody pressed Stop
    │   └── EngineError                  … because torch's own engine lacks or changed what we need
    └── MissingError     (ImportError)   an optional package that is not installed

A message has three parts: the rule, what came, what would do.
"""

from __future__ import annotations

import reprlib
from typing import Any

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 60  # characters
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxarray = 12  # items


def shown(value: object) -> str:
    """`value` as a message names it, cut where it is long."""
    try:
        return _BRIEF.repr(value)
    except ValueError:  # so many digits that Python refuses to write them
        return "a number of thousands of digits"


class ExplorerError(Exception):
    """Root of the tree above: catch this to catch them all."""


class InputError(ExplorerError, ValueError):
    """A number, name or file that cannot be.

    Attributes:
        argument: which argument is at fault, by its public name ("n_micro_batches"), or "".
        legal: the nearest legal values for it, best first; empty if there are none to name.
    """

    def __init__(self, message: str, *, argument: str = "", legal: tuple[int | str, ...] = ()) -> None:
        super().__init__(message)
        self.argument = argument
        self.legal = legal


class ScheduleError(InputError):
    """A schedule that does not exist for these numbers, or a name that no schedule has."""


class CostError(InputError):
    """A cost that is negative, not finite or of the wrong shape."""


class ModelError(InputError):
    """A model that cannot be cut into these stages, or does not fit its batch."""


class ProgramError(ExplorerError, ValueError):
    """An order of actions that is incomplete, doubled, misplaced or out of range.

    Attributes:
        rank: the rank it was found on, or −1.
        slot: the place in that rank's order, or −1.
    """

    def __init__(self, message: str, *, rank: int = -1, slot: int = -1) -> None:
        super().__init__(message)
        self.rank = rank
        self.slot = slot


class CircularWaitError(ProgramError):
    """Actions that wait for each other in a circle: such a program hangs.

    Attributes:
        chain: (rank, slot, action as text) of each link, each waiting for the next, the last for the first.
    """

    def __init__(self, message: str, *, chain: tuple[tuple[int, int, str], ...]) -> None:
        super().__init__(message, rank=chain[0][0], slot=chain[0][1])
        self.chain = chain


class RunError(ExplorerError, RuntimeError):
    """A run that failed on its way; the cause is its `__cause__`.

    Attributes:
        trace: what had run and been told of until then, an explorer.Trace; None if nothing had.
    """

    trace: Any = None


class RunStopped(RunError):
    """A run that ended because it was asked to stop."""


class EngineError(RunError):
    """The installed torch lacks, or changed, a part of its pipeline engine that a run needs."""


class MissingError(ExplorerError, ImportError):
    """A package that this call needs is not installed."""
