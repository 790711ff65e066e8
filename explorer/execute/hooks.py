"""What a run tells whoever listens: plain events, fed to no-op methods.

Recorder, live chart, progress bar and stop button are all just hooks:

    class Watch(ex.Hook):
        def slot_end(self, event):
            print(event.rank, event.actions, event.seconds)

    ex.execute(program, model, batch, loss=loss, hooks=[Watch()])

Everything is called on the thread that runs, between the operations, never within what is timed. A hook that raises
ends the run; RunStopped is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.core.clocks import ClockOffset
from explorer.execute.events import (
    Calibrated,
    Memory,
    Message,
    RunEnd,
    RunStart,
    SlotEnd,
    SlotStart,
    Started,
    StepEnd,
    StepStart,
    Transfer,
    Updated,
)
from explorer.execute.faults import Injected


class Hook:
    """Derive from this and override what you want to hear of; what you do not override does nothing."""

    def run_start(self, event: RunStart) -> None:
        """A run begins."""

    def started(self, event: Started) -> None:
        """The ranks' processes are at work; a run in the kernel has none."""

    def calibrated(self, event: Calibrated) -> None:
        """The warm-up is over."""

    def step_start(self, event: StepStart) -> None:
        """A step begins."""

    def slot_start(self, event: SlotStart) -> None:
        """A slot is about to run."""

    def slot_end(self, event: SlotEnd) -> None:
        """A slot has run."""

    def injected(self, event: Injected) -> None:
        """A fault that the run was given happens."""

    def transfer(self, event: Transfer) -> None:
        """Something goes from one rank to another."""

    def message(self, event: Message) -> None:
        """Something has gone from one process to another."""

    def aligned(self, offsets: tuple[ClockOffset, ...]) -> None:
        """The clocks of all ranks have been brought onto rank 0's."""

    def memory(self, event: Memory) -> None:
        """Memory was taken or given back."""

    def updated(self, event: Updated) -> None:
        """A stage's optimizer has taken its step."""

    def step_end(self, event: StepEnd) -> None:
        """A step is over."""

    def run_end(self, event: RunEnd) -> None:
        """The run is over, well or not; called exactly once for every `run_start`."""

    def pulse(self) -> None:
        """Called between layers where no slot begins: while warming up and while comparing with the whole model."""


class Hooks(Hook):
    """Several hooks as one, told in order; each event reaches only those that override its method."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._listeners = {name: _overriding(hooks, name) for name in _METHODS}

    def hears(self, name: str) -> bool:
        """Whether anybody overrides the method `name`: what nobody hears of need not be worked out."""
        return bool(self._listeners[name])

    def run_start(self, event: RunStart) -> None:
        """Tell all."""
        self._tell("run_start", event)

    def started(self, event: Started) -> None:
        """Tell all."""
        self._tell("started", event)

    def calibrated(self, event: Calibrated) -> None:
        """Tell all."""
        self._tell("calibrated", event)

    def step_start(self, event: StepStart) -> None:
        """Tell all."""
        self._tell("step_start", event)

    def slot_start(self, event: SlotStart) -> None:
        """Tell all."""
        self._tell("slot_start", event)

    def slot_end(self, event: SlotEnd) -> None:
        """Tell all."""
        self._tell("slot_end", event)

    def injected(self, event: Injected) -> None:
        """Tell all."""
        self._tell("injected", event)

    def transfer(self, event: Transfer) -> None:
        """Tell all."""
        self._tell("transfer", event)

    def message(self, event: Message) -> None:
        """Tell all."""
        self._tell("message", event)

    def aligned(self, offsets: tuple[ClockOffset, ...]) -> None:
        """Tell all."""
        self._tell("aligned", offsets)

    def memory(self, event: Memory) -> None:
        """Tell all."""
        self._tell("memory", event)

    def updated(self, event: Updated) -> None:
        """Tell all."""
        self._tell("updated", event)

    def step_end(self, event: StepEnd) -> None:
        """Tell all."""
        self._tell("step_end", event)

    def pulse(self) -> None:
        """Tell all."""
        for listener in self._listeners["pulse"]:
            listener()

    def run_end(self, event: RunEnd) -> None:
        """Tell all, also those after one that raises; its error is raised at the end."""
        errors = []
        for listener in self._listeners["run_end"]:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001  the others must still hear that it is over
                errors.append(error)
        if errors:
            raise errors[0]

    def _tell(self, name: str, event: object) -> None:
        for listener in self._listeners[name]:
            listener(event)


_METHODS = tuple(name for name in vars(Hook) if not name.startswith("_"))


def _overriding(hooks: Sequence[Hook], name: str) -> list[Any]:
    return [getattr(hook, name) for hook in hooks if getattr(type(hook), name) is not getattr(Hook, name)]
