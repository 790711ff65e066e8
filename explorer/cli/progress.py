"""A line on the terminal that says how far a run is."""

from __future__ import annotations

import time
from typing import TextIO

from explorer.execute.events import RunEnd, RunStart, SlotEnd, StepEnd
from explorer.execute.hooks import Hook

_EVERY = 0.1  # seconds between two writes


class Progress(Hook):
    """Rewrites one line of a terminal, and clears it in the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._n_steps = self._n_slots = self._done = 0
        self._last_write = self._last_step = 0.0
        self._loss = ""

    def run_start(self, event: RunStart) -> None:
        """Learn how much there is to do."""
        self._n_steps, self._n_slots = event.n_steps, event.program.n_slots

    def slot_end(self, event: SlotEnd) -> None:
        """Count one slot, and write now and then."""
        self._done += 1
        now = time.monotonic()
        if now - self._last_write >= _EVERY:
            self._last_write = now
            self._say(event.step)

    def step_end(self, event: StepEnd) -> None:
        """Keep the loss, and show it: under torchrun all slots of a step are told at once, at its end."""
        self._loss = f", loss {event.loss:.4f}"
        now = time.monotonic()
        if now - self._last_step >= _EVERY:
            self._last_step = self._last_write = now
            self._say(event.step)

    def run_end(self, event: RunEnd) -> None:
        """Leave the line empty for what comes next."""
        self._write("")

    def _say(self, step: int) -> None:
        share = self._done / max(self._n_steps * self._n_slots, 1)
        self._write(f"step {step + 1} of {self._n_steps}, {min(share, 1.0):.0%} of the actions{self._loss}")

    def _write(self, text: str) -> None:
        # to the line's beginning, the text, and nothing behind it
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()
