"""A message that is held back: a thread gives it to the transport later, while its sender goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any


class HeldBack:
    """The one thing to wait for that torch expects of a message; its parts are there later.

    Args:
        post: gives the message to the transport; its parts, to be waited for.
        seconds: to wait before.
        before: one to the same rank that must be gone first, for they arrive in the order they are sent in.
        sent: called when it has been, with when it was posted.
        clock: seconds now.
    """

    def __init__(
        self,
        post: Callable[[], Sequence[Any]],
        seconds: float,
        before: HeldBack | None,
        *,
        sent: Callable[[Any], None],
        clock: Callable[[], Any],
    ) -> None:
        self._post, self._seconds, self._before, self._sent, self._clock = post, seconds, before, sent, clock
        self._posted = threading.Event()
        self._works: Sequence[Any] = ()
        self._error: BaseException | None = None
        threading.Thread(target=self._work, name="explorer-held-back", daemon=True).start()

    @property
    def is_gone(self) -> bool:
        """Whether the transport has it."""
        return self._posted.is_set()

    def until_gone(self) -> None:
        """Wait until the transport has it."""
        self._posted.wait()

    def wait(self) -> None:
        """Wait until it has been sent."""
        self._posted.wait()
        if self._error is not None:
            raise self._error
        for work in self._works:
            work.wait()
        self._sent(self._at)

    def _work(self) -> None:
        try:
            time.sleep(self._seconds)
            if self._before is not None:
                self._before.until_gone()
            self._at = self._clock()
            self._works = self._post()
        except BaseException as error:  # noqa: BLE001  who waits for it is told
            self._error = error
        finally:
            self._before = None
            self._posted.set()
