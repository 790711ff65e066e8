"""Faults to put into a run on purpose: a slow rank, a hiccup, a late message, an error, a death.

A fault is a value; it says of itself, in words, what it is (`str(fault)`, which `fault_words` reads back), whether a
program and a run can have it, and what the simulator is to expect of it. `injection` makes it happen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from explorer.core import Action, Costs, Kind, Program
from explorer.errors import InputError
from explorer.execute.fault_rules import (
    check_action,
    check_number,
    check_rank,
    check_step,
    check_step_given,
    check_there,
    check_whole,
)


class Fault:
    """A fault; its kinds are SlowRank, DelayAction, DelayMessage, FailAction and KillRank.

    Attributes:
        word: by which `parse_fault`, the command line and the app know its kind.
        ends_run: whether a run does not go through with it.
    """

    word: ClassVar[str]
    ends_run: ClassVar[bool] = False

    def __str__(self) -> str:
        given = [(one.name, getattr(self, one.name)) for one in fields_of(self)]
        said = [f"{name}={_plain(value)}" for name, value in given if value != getattr(type(self), name, None)]
        return " ".join([self.word, *said])

    def is_in(self, step: int) -> bool:
        """Whether it happens in this step."""
        raise NotImplementedError

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse it where it cannot be.

        Raises:
            InputError: naming what could be.
        """
        raise NotImplementedError

    def expected(self, costs: Costs, program: Program) -> Costs:
        """The costs of a step in which it happens."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault happens; each is told of once a step.

    Attributes:
        step: of the run, from 0.
        rank: that it happens on.
        slot: at which, counted over all ranks as in the program's arrays.
        fault: it.
        begun: seconds of the host's monotonic clock; no virtual clock knows of it.
    """

    step: int
    rank: int
    slot: int
    fault: Fault
    begun: float


@dataclass(frozen=True, kw_only=True)
class SlowRank(Fault):
    """A rank that takes `factor` times as long for each F, B, I and W: it waits behind each, and is timed with it.

    Attributes:
        rank: that is slow.
        factor: how many times as long it takes, at least 1.
        from_step: from which step on.
    """

    word: ClassVar[str] = "slow"
    rank: int
    factor: float
    from_step: int = 0

    def __post_init__(self) -> None:
        check_whole("rank", self.rank)
        check_number("factor", self.factor, least=1.0)
        check_whole("from_step", self.from_step)

    def is_in(self, step: int) -> bool:
        """From its first step on."""
        return step >= self.from_step

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse a rank or a step that is not there."""
        check_rank(self, program)
        check_step(self, "from_step", n_steps)

    def expected(self, costs: Costs, program: Program) -> Costs:
        """The rank's time factor, multiplied."""
        factor = np.array(np.broadcast_to(np.asarray(costs.time_factor, np.float64), program.n_ranks))
        factor[self.rank] *= self.factor
        return replace(costs, time_factor=factor)


@dataclass(frozen=True, kw_only=True)
class _Delay(Fault):
    """What is so many seconds late, in a step or in each."""

    action: str
    seconds: float
    step: int | None = None

    def __post_init__(self) -> None:
        check_action(self.action)
        check_number("seconds", self.seconds)
        check_step_given(self.step)

    def is_in(self, step: int) -> bool:
        """In its step, or in each."""
        return self.step in (None, step)

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse an action or a step that is not there."""
        check_there(self, program)
        check_step(self, "step", n_steps)


@dataclass(frozen=True, kw_only=True)
class DelayAction(_Delay):
    """An action that takes so many seconds more: its rank waits within it, and is timed with it.

    Attributes:
        action: as ``2F3``, the forward of micro-batch 3 in stage 2.
        seconds: it takes besides.
        step: in which; None in each.
    """

    word: ClassVar[str] = "delay"

    def expected(self, costs: Costs, program: Program) -> Costs:
        """The action's delay, longer."""
        return replace(costs, delays=_longer(costs.delays, self.action, self.seconds))


@dataclass(frozen=True, kw_only=True)
class DelayMessage(_Delay):
    """What an action sends to another rank leaves so many seconds later; its sender goes on meanwhile.

    Between processes it is held back before it is given to the transport, and what its rank sends to the same rank
    later queues behind it. In the kernel, where links are modelled, it is as much longer on its way.

    Attributes:
        action: whose output or gradient it is, as ``2F3``.
        seconds: it is late.
        step: in which; None in each.
    """

    word: ClassVar[str] = "delay_message"

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse an action that sends nothing to another rank, or a step that is not there."""
        super().check(program, n_steps, backend)
        action = Action.parse(self.action)
        ranks = program.placement.routes[0].tolist()
        to = action.stage + {Kind.F: 1, Kind.B: -1, Kind.I: -1}.get(action.kind, 0)
        if not 0 <= to < program.n_stages or ranks[to] == ranks[action.stage]:
            raise InputError(
                f"a message goes from one rank to another; {self.action} sends none; name the F of a stage whose next "
                "stage is on another rank, or the backward of one whose stage before is",
                argument="action",
            )

    def expected(self, costs: Costs, program: Program) -> Costs:
        """The message's delay, longer."""
        return replace(costs, message_delays=_longer(costs.message_delays, self.action, self.seconds))


@dataclass(frozen=True, kw_only=True)
class FailAction(Fault):
    """An action that raises an error: in the first layer of a forward, or as a backward begins.

    Attributes:
        action: as ``2F3``.
        step: in which.
    """

    word: ClassVar[str] = "raise"
    ends_run: ClassVar[bool] = True
    action: str
    step: int = 0

    def __post_init__(self) -> None:
        check_action(self.action)
        check_whole("step", self.step)

    def is_in(self, step: int) -> bool:
        """In its step."""
        return step == self.step

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse an action or a step that is not there."""
        check_there(self, program)
        check_step(self, "step", n_steps)


@dataclass(frozen=True, kw_only=True)
class KillRank(Fault):
    """A rank whose process is killed, by SIGKILL, before one of its actions.

    Attributes:
        rank: whose process.
        step: in which.
        action: before which, as ``2F3``; "" for its first.
    """

    word: ClassVar[str] = "kill"
    ends_run: ClassVar[bool] = True
    rank: int
    step: int = 0
    action: str = ""

    def __post_init__(self) -> None:
        check_whole("rank", self.rank)
        check_whole("step", self.step)
        if self.action != "":
            check_action(self.action)

    def is_in(self, step: int) -> bool:
        """In its step."""
        return step == self.step

    def check(self, program: Program, n_steps: int, backend: str) -> None:
        """Refuse a rank, step or action that is not there, and ranks that are no processes."""
        if backend == "kernel":
            raise InputError(
                "a rank is killed with its process, and in the kernel all ranks are one, this one; "
                'got kill; run backend="processes", or raise instead',
                argument="faults",
            )
        check_rank(self, program)
        check_step(self, "step", n_steps)
        if not self.action:
            return
        check_there(self, program)
        action = Action.parse(self.action)
        there = int(program.placement.rank_of(action.stage, action.micro_batch))
        if there != self.rank:
            raise InputError(
                f"a rank is killed before an action of its own; {self.action} is on rank {there}, not {self.rank}; "
                f"try rank={there}",
                argument="rank",
                legal=(there,),
            )


def fields_of(kind: Any) -> tuple[Any, ...]:
    """The fields of a kind of fault, or of a fault."""
    return fields(kind)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _longer(delays: Any, action: str, seconds: float) -> dict[str, float]:
    name = str(Action.parse(action))
    return {**delays, name: delays.get(name, 0.0) + seconds}
