"""What a run in processes failed of: of several reports, the one that no other can have caused."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from explorer.errors import RunError
from explorer.execute.places import Places
from explorer.execute.reporter import LATEST
from explorer.execute.tasks import Failure
from explorer.execute.workers import Workers

_TICK = 0.05  # seconds between two looks
_ECHOES = 0.5  # seconds in which the cause of what may be an echo is waited for
_LAST_WORDS = LATEST + 0.1  # seconds in which the others may still tell what they did, once the cause is known


class InWorker(Exception):  # noqa: N818  it is no error of its own: it shows where another process had one
    """The trace of an error in a worker.

    Attributes:
        rank: that it is from.
    """

    def __init__(self, rank: int, details: str) -> None:
        super().__init__(f"on rank {rank}:\n{details}")
        self.rank = rank


def cause_of(
    workers: Workers, places: Places, done: Collection[int], rank: int, report: Any, *, hear: Callable[..., None]
) -> RunError:
    """What to raise after a first report of trouble; the workers are ended, their last words heard.

    Args:
        workers: of the run.
        places: where the ranks are.
        done: ranks that have given back what they came to.
        rank: the first report is from.
        report: it; None where a process has ended.
        hear: called with the rank and the parts of each other report.
    """
    ended, failures = set[int](), dict[int, Failure]()
    limit = time.monotonic() + _ECHOES
    reports: Iterator[tuple[int, Any]] = iter([(rank, report)])
    while True:
        for who, what in reports:
            if what is None:
                ended.update(() if who in done else (who,))
            elif what[0] == "failed":
                failures[who] = what[2]
            else:
                places.note(who, *what)
                hear(who, *what)
        causes = [who for who in failures if not failures[who].is_echo]
        if causes or ended:
            limit = min(limit, time.monotonic() + _LAST_WORDS)
        if len(ended | failures.keys() | set(done)) == len(places) or time.monotonic() > limit:
            break
        reports = workers.receive(_TICK)
    silent = sorted(ended - failures.keys())
    signals = workers.end(gone=silent)
    if silent:
        who = max(silent, key=lambda rank: bool(signals.get(rank)))  # one that was killed, if any was
        return _ended(who, signals.get(who, 0), places)
    who = (causes or sorted(failures))[0]
    return _failed(who, failures[who], places)


def silence(places: Places, seconds: float) -> RunError:
    """What to raise when no rank is heard of any more."""
    waited_for = places.waited_for()
    where = "; ".join(f"rank {rank}, {places.of(rank)}" for rank in waited_for)
    others = "the others wait for " if len(waited_for) < len(places) else ""
    return RunError(
        f"every rank must go on; none has been heard of for {seconds:g} s, {others}{where}; look for a loop or a lock "
        f"there or, if one action takes that long, give more than timeout={seconds:g}"
    )


def _ended(rank: int, number: int, places: Places) -> RunError:
    how = f"was ended by {signal.Signals(number).name}" if number else "has ended by itself"
    advice = "the system may have been short of memory" if number == signal.SIGKILL else "see the error stream"
    if rank in places.faults:
        advice = f"by the fault {str(places.faults[rank])!r}; leave it out, or go on with resume from a checkpoint"
    return RunError(f"every rank must run through; rank {rank} {how} {places.of(rank)}; {advice}")


def _failed(rank: int, failure: Failure, places: Places) -> RunError:
    if failure.is_known and not failure.is_echo:
        error = RunError(failure.message)
    else:
        where = places.of(rank)
        error = RunError(f"every rank must run through; rank {rank} failed {where}: {failure.message}; mend it there")
    error.__cause__ = InWorker(rank, failure.details)
    return error
