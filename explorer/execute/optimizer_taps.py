"""Listening to the optimizers of somebody else's run: when each took its step, and for which stages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from explorer.execute.taps import Stamp

Shares = dict[int, int]  # stage → bytes of its parameters


class Update(NamedTuple):
    """A step that an optimizer has taken.

    Attributes:
        step: of the schedule, that it belongs to.
        begin: as the clock stamps it.
        end: as the clock stamps it.
        shares: stage → bytes of its parameters that were updated.
    """

    step: int
    begin: Stamp
    end: Stamp
    shares: Shares


class Listener(Protocol):
    """Who is told."""

    def now(self) -> Stamp:
        """The time, at once."""

    @property
    def trained(self) -> int | None:
        """The step whose gradients are there; None within a step, and before the first."""

    def updated(self, update: Update) -> None:
        """An optimizer has taken its step."""


class _Begun(NamedTuple):
    optimizer: Optimizer
    step: int
    stamp: Stamp


class OptimizerTaps:
    """Hears of every optimizer step of this process while it is open, by torch's own hooks for all optimizers.

    Told are those of optimizers that hold parameters of the stages. One that steps within another's step, as in a
    wrapper, is a part of it; one that steps within a step of the schedule is a part of its backwards.

    Args:
        stages: torch's stage objects of this rank.
        listener: who is told.
    """

    def __init__(self, stages: Sequence[Any], listener: Listener) -> None:
        self._stages, self._listener = stages, listener
        self._begun: list[_Begun] = []
        self._known: WeakKeyDictionary[Optimizer, Shares] = WeakKeyDictionary()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Within it, the listener is told."""
        handles = [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, optimizer: Optimizer, *_: Any) -> None:
        step = self._listener.trained
        if step is not None:
            self._begun = [one for one in self._begun if one.step == step]  # what is left of another raised
            self._begun.append(_Begun(optimizer, step, self._listener.now()))

    def _after(self, optimizer: Optimizer, *_: Any) -> None:
        # a class that calls its parent's step is heard twice
        places = [place for place, one in enumerate(self._begun) if one.optimizer is optimizer]
        if not places:
            return
        place = places[-1]
        end, begun = self._listener.now(), self._begun[place]
        del self._begun[place:]
        if place or self._listener.trained != begun.step:
            return
        shares = self._shares(optimizer)
        if shares:
            self._listener.updated(Update(begun.step, begun.stamp, end, shares))

    def _shares(self, optimizer: Optimizer) -> Shares:
        """Of an optimizer; looked up once, for it may hold thousands of parameters."""
        if optimizer not in self._known:
            owner = {id(p): stage.stage_index for stage in self._stages for p in stage.submod.parameters()}
            shares: Shares = {}
            for parameter in (one for group in optimizer.param_groups for one in group["params"]):
                stage = owner.get(id(parameter))
                if stage is not None:
                    shares[stage] = shares.get(stage, 0) + int(parameter.nbytes)
            self._known[optimizer] = dict(sorted(shares.items()))
        return self._known[optimizer]
