"""What a slider would show one step further, worked out while the hand rests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import asdict, replace

from explorer.widgets.numbers import numbers
from explorer.widgets.picture import prepare
from explorer.widgets.settings import Settings

_REST = 0.08  # seconds after a picture: until then the browser, which is drawing it, has the cores
_SMALL = 0.25  # of a number; whoever jumps further will hardly do so again


def one_further(before: Settings, now: Settings) -> Settings | None:
    """`now`, moved on as it was moved from `before`; None unless that was a small step of one number."""
    old, new = asdict(before), asdict(now)
    changed = [name for name, value in new.items() if value != old[name]]
    if len(changed) != 1 or not all(type(value[changed[0]]) in (int, float) for value in (old, new)):
        return None
    value, step = new[changed[0]], new[changed[0]] - old[changed[0]]
    is_small = abs(step) <= max(abs(value) * _SMALL, type(value) is int)
    return replace(now, **{changed[0]: value + step}) if is_small else None


def _prepare(settings: Settings) -> None:
    """Have the answers ready to all that takes long of a picture; who is asked keeps them."""
    trace = settings.predict().trace
    numbers(trace, None)
    prepare(trace, settings.memory_limit)


class Ahead:
    """Prepares what is probably asked for next, in a thread of its own, and forgets it when something else is.

    Args:
        may: whether nothing goes on now that this would disturb.
    """

    def __init__(self, *, may: Callable[[], bool]) -> None:
        self._may = may
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._timer: threading.Timer | None = None
        self._doing: Settings | None = None

    def expect(self, settings: Settings | None) -> None:
        """Prepare these once the hand rests, instead of what was expected before."""
        self.close()
        if settings is not None:
            with self._lock:
                self._timer = threading.Timer(_REST, self._work, [settings])
                self._timer.daemon = True
                self._timer.start()

    def await_this(self, settings: Settings) -> None:
        """These are asked for now: where they are just being prepared, wait for that."""
        self.close()
        if self._doing == settings:
            with self._turn:
                pass

    def close(self) -> None:
        """Begin nothing any more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _work(self, settings: Settings) -> None:
        with self._turn:
            if not self._may():
                return
            self._doing = settings
            try:
                with contextlib.suppress(Exception):  # who asks for it will be told
                    _prepare(settings)
            finally:
                self._doing = None
