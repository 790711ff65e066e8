"""Makes the faults of a run happen, at their step and action, and tells of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from explorer.core import Action, Kind
from explorer.execute.faults import DelayAction, DelayMessage, FailAction, Fault, Injected, KillRank, SlowRank
from explorer.execute.stages import Chain

_MADE_BY = {Kind.SEND_F: (Kind.F,), Kind.SEND_B: (Kind.B, Kind.I)}


class InjectedError(Exception):
    """What an action raises because it was to."""


class Injection:
    """The faults of a run, for those of its stages that work in this process.

    Args:
        faults: checked.
        tell: called with "injected" and what happens.
        module_of: stage → its module.
        kill: ends this process at once; None where it must not.
    """

    def __init__(
        self,
        faults: Sequence[Fault],
        *,
        tell: Callable[[str, Any], None],
        module_of: Callable[[int], nn.Module],
        kill: Callable[[], None] | None = None,
    ) -> None:
        self._tell, self._module_of, self._kill = tell, module_of, kill
        self._slow = [fault for fault in faults if isinstance(fault, SlowRank)]
        self._deaths = [fault for fault in faults if isinstance(fault, KillRank)]
        self._by_action: dict[Action, list[Fault]] = {}
        self._messages: dict[Action, list[DelayMessage]] = {}
        for fault in faults:
            if isinstance(fault, DelayMessage):
                self._messages.setdefault(Action.parse(fault.action), []).append(fault)
            elif isinstance(fault, (DelayAction, FailAction)):
                self._by_action.setdefault(Action.parse(fault.action), []).append(fault)
        self._told: set[tuple[int, Fault]] = set()

    def begin(self, step: int, rank: int, slot: int, action: Action) -> None:
        """An action is about to run: it may raise, or its process die."""
        for death in self._deaths:
            if death.is_in(step) and death.rank == rank and death.action in ("", str(action)) and self._kill:
                self._say(death, step, rank, slot)
                self._kill()
        for fault in self._by_action.get(action, ()):
            if isinstance(fault, FailAction) and fault.is_in(step):
                self._say(fault, step, rank, slot)
                self._raise(fault, action)

    def stretch(self, step: int, rank: int, slot: int, action: Action, taken: Callable[[], float]) -> None:
        """An action has run, and may take longer still.

        Args:
            step: of the run.
            rank: of the action.
            slot: of the action, counted over all ranks.
            action: that has run.
            taken: gives the seconds it took.
        """
        slow = [fault for fault in self._slow if fault.rank == rank and fault.is_in(step)]
        late = [one for one in self._by_action.get(action, ()) if isinstance(one, DelayAction) and one.is_in(step)]
        if not slow and not late:
            return
        for fault in (*slow, *late):
            self._say(fault, step, rank, slot)
        factor = 1.0
        for one in slow:
            factor *= one.factor
        time.sleep((factor - 1) * taken() + sum(one.seconds for one in late))

    def say_messages(self, step: int, rank: int, slot: int, action: Action) -> None:
        """An action has run whose message is late."""
        for fault in self._messages.get(action, ()):
            if fault.is_in(step):
                self._say(fault, step, rank, slot)

    def hold_back(self, step: int, message: Action) -> float:
        """Seconds that a message, SEND_F or SEND_B, is to wait before it is sent."""
        makers = [Action(kind, message.stage, message.micro_batch) for kind in _MADE_BY[message.kind]]
        faults = [fault for maker in makers for fault in self._messages.get(maker, ())]
        return sum(fault.seconds for fault in faults if fault.is_in(step))

    def _say(self, fault: Fault, step: int, rank: int, slot: int) -> None:
        """Tell of a fault, once a step."""
        if (step, fault) not in self._told:
            self._told.add((step, fault))
            self._tell("injected", Injected(step, rank, slot, fault, time.perf_counter()))

    def _raise(self, fault: FailAction, action: Action) -> None:
        error = InjectedError(f"by the fault {str(fault)!r}")
        if action.kind != Kind.F:
            raise error
        module = self._module_of(action.stage)
        first = module.layers[0] if isinstance(module, Chain) and len(module.layers) else module

        def fail(_module: Any, _arguments: Any) -> None:
            handle.remove()
            raise error

        handle = first.register_forward_pre_hook(fail)
