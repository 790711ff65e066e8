"""Real runs on a thread of their own: one at a time, the latest asked for wins."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from explorer.errors import InputError, RunStopped
from explorer.execute import Hook, Recorder, Stop
from explorer.widgets.settings import Prediction, Settings
from explorer.widgets.where import KERNEL

if TYPE_CHECKING:
    from explorer.execute import Run

FRAMES_A_SECOND = 15
_DEBOUNCE = 0.15  # seconds without a newer wish before a run on change begins
_MOST_BY_ITSELF = 2000  # operations
_PATIENCE_AT_EXIT = 5.0  # seconds for the operation that runs


@dataclass(eq=False)
class Job:
    """A run that was asked for.

    Attributes:
        settings: of the controls when it was.
        prediction: from the controls, with the program to run.
        start: runs it, given the hooks, and returns the Run.
        backend: where its ranks work.
        by_itself: whether it begins because something was changed, without anybody having asked.
        recorder: follows it.
        stop: ends it.
    """

    settings: Settings
    prediction: Prediction
    start: Callable[[list[Any]], Run]
    backend: str = KERNEL
    by_itself: bool = False
    recorder: Recorder = field(default_factory=Recorder)
    stop: Stop = field(default_factory=Stop)


def check_small(job: Job) -> None:
    """Refuse a run that would take so long that somebody should ask for it.

    Raises:
        InputError: if it has too many operations.
    """
    n_actions = job.prediction.program.n_actions * job.settings.n_steps
    if n_actions > _MOST_BY_ITSELF:
        raise InputError(f"A run of {n_actions:,} operations does not begin by itself: press Run", argument="run")


class _Frames(Hook):
    """Draws between two operations, at most 15 times a second, on the thread that runs them.

    Time between operations counts for nothing, while a second thread would hold the interpreter's lock against the
    operations that are being timed.
    """

    def __init__(self, draw: Callable[[], None], has_room: Callable[[], bool]) -> None:
        self._draw, self._has_room = draw, has_room
        self._last = time.monotonic()

    def slot_end(self, event: object) -> None:
        """Draw, if it is time and the browser keeps up."""
        if time.monotonic() - self._last >= 1 / FRAMES_A_SECOND and self._has_room():
            self._last = time.monotonic()
            self._draw()


class Runner:
    """Runs jobs on one thread, which also draws a frame of the one that runs 15 times a second.

    Args:
        on_start: called with the job that begins; what it raises is the job's error, and it does not begin.
        on_frame: called with the job between two operations, at most 15 times a second.
        on_end: called with the job, its Run or None, and its error or None.
        has_room: whether the browser takes another frame now; none is drawn before.
    """

    def __init__(
        self,
        *,
        on_start: Callable[[Job], None],
        on_frame: Callable[[Job], None],
        on_end: Callable[[Job, Run | None, BaseException | None], None],
        has_room: Callable[[], bool],
    ) -> None:
        self._on_start, self._on_frame, self._on_end = on_start, on_frame, on_end
        self._has_room = has_room
        self._changed = threading.Condition()
        self._next: Job | None = None
        self._due = 0.0
        self._current: Job | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""
        return self._current is not None

    @property
    def waiting(self) -> bool:
        """Whether another run is about to begin."""
        with self._changed:
            return self._next is not None

    def submit(self, job: Job) -> None:
        """Stop what runs and begin `job`; by itself after a short while, in which a newer one may take its place."""
        with self._changed:
            if self._closed:
                return
            self._next = job
            self._due = time.monotonic() + (_DEBOUNCE if job.by_itself else 0.0)
            if self._current:
                self._current.stop.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="explorer-runner", daemon=True)
                self._thread.start()
                atexit.register(self._leave)
            self._changed.notify_all()

    def stop(self) -> bool:
        """Stop what runs and forget what waits; whether anything ran."""
        with self._changed:
            self._next = None
            if self._current:
                self._current.stop.set()
            self._changed.notify_all()
            return self._current is not None

    def close(self) -> None:
        """Stop, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.stop()
        atexit.unregister(self._leave)

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended after `close`; whether it has."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _leave(self) -> None:
        """Let no operation of torch's be under way when the interpreter is taken apart: that would abort it."""
        self.close()
        self.join(_PATIENCE_AT_EXIT)

    def _work(self) -> None:
        while (job := self._take()) is not None:
            self._run(job)

    def _take(self) -> Job | None:
        """The next job once nobody has asked for another for a while; None when closed."""
        with self._changed:
            while not self._closed:
                if self._next is None:
                    self._changed.wait()
                elif (left := self._due - time.monotonic()) > 0:
                    self._changed.wait(left)
                else:
                    self._current, self._next = self._next, None
                    return self._current
        return None

    def _run(self, job: Job) -> None:
        run: Run | None = None
        error: BaseException | None = None
        frames = _Frames(lambda: self._on_frame(job), self._has_room)
        try:
            self._on_start(job)
            run = job.start([job.recorder, job.stop, frames])
        except RunStopped as stopped:
            error = stopped
        except Exception as failed:  # noqa: BLE001  whatever a model raises is shown in the app
            error = failed
        with self._changed:
            self._current = None  # before it is told of: whoever stops it now stops nothing
        self._on_end(job, run, error)
