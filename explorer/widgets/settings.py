"""What the controls say, as a value, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, LinkSharing, Program, RankShare, Trace, node_links
from explorer.errors import ScheduleError
from explorer.lowering import add_messages, add_updates, move
from explorer.planner import Point, search_options
from explorer.schedules import REGISTRY, schedule
from explorer.schedules.options import Options, read_options
from explorer.simulate import simulate

_MOST_KEPT = 200_000  # actions of a prediction that is kept, which takes some 25 MB


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The state of the controls; times in seconds, sizes in bytes.

    Attributes:
        model: name of a ready model, or "own".
        schedule: name of a schedule.
        n_ranks: pipeline ranks.
        n_chunks: stages a rank; None for the fewest the schedule has.
        n_micro_batches: micro-batches in a step.
        forward: seconds of a rank's share of one micro-batch's forward.
        backward_ratio: how many times as long its backward takes.
        latency: seconds of an empty message between ranks.
        bandwidth: bytes per second of a link.
        message_bytes: bytes of a message, for the prediction; a run knows its own.
        n_steps: training steps of a run.
        options: further arguments of the schedule, like "warm_up=6, dialect=torch".
        warm_up: as the schedule's argument of that name, where it has one; −1 for the schedule's own.
        weight_share: of a backward, what W takes where a schedule splits it.
        overlap_share: how long an F with a B begun together takes, as a share of both.
        recompute: seconds of running a forward again before its backward, as a share of the forward.
        recompute_for: "inputs" or "both", as in Costs.
        fixed: seconds that every action takes besides.
        jitter: standard deviation of each action, as a share of it.
        seed: of the jitter.
        slow_rank: the one that `slow_factor` is of.
        slow_factor: how many times as long that rank takes.
        long_micro_batch: the one that `long_factor` is of.
        long_factor: how many times as long its computing takes.
        late_action: the one that takes `late` seconds more, like 2F3; "" for none.
        late: seconds.
        ranks_per_node: ranks that share a node's way out and way in; 0: no message hinders another.
        sharing: "fair" or "queue", as in Costs.
        update: seconds of a rank's optimizer, behind the step's makespan.
        moves: of actions to other slots of their ranks, as (action, slot), one after the other: an edited order.
        messages: "free", or by which rule of `simulate` sends and receives meet in the prediction.
        activation_bytes: that a micro-batch keeps of a rank's share from F to the end of its backward; 0: not known.
        kept_share: of those, what stays for W once I has ended.
        recompute_bytes: that a backward holds besides while it has a rank's share of the forward again.
        parameter_bytes: of a rank's share of the model; its gradients are as large.
        optimizer_ratio: what the optimizer keeps, as a multiple of the parameters.
        memory_limit: of a rank's device, for everything; 0: none.
    """

    model: str = "mlp"
    schedule: str = "1f1b"
    n_ranks: int = 4
    n_chunks: int | None = None
    n_micro_batches: int = 8
    forward: float = 0.01
    backward_ratio: float = 2.0
    latency: float = 0.0
    bandwidth: float = math.inf
    message_bytes: float = 4e6
    n_steps: int = 3
    options: str = ""
    warm_up: int = -1
    weight_share: float = 0.5
    overlap_share: float = 1.0
    recompute: float = 0.0
    recompute_for: str = "inputs"
    fixed: float = 0.0
    jitter: float = 0.0
    seed: int = 0
    slow_rank: int = 0
    slow_factor: float = 1.0
    long_micro_batch: int = 0
    long_factor: float = 1.0
    late_action: str = ""
    late: float = 0.0
    ranks_per_node: int = 0
    sharing: LinkSharing = "fair"
    update: float = 0.0
    messages: str = "free"
    activation_bytes: float = 0.0
    kept_share: float = 1.0
    recompute_bytes: float = 0.0
    parameter_bytes: float = 0.0
    optimizer_ratio: float = 2.0
    memory_limit: float = 0.0
    moves: tuple[tuple[str, int], ...] = ()

    def program(self) -> Program:
        """The program of these numbers; the last few are kept, and with them their graphs."""
        options = (*self.further(), *self.searched())
        program = _program(self.schedule, self.n_ranks, self.n_micro_batches, self.n_chunks, options)
        return _edited(program, tuple((action, slot) for action, slot in self.moves)) if self.moves else program

    def further(self) -> Options:
        """Further arguments of the schedule: what was typed, and the warm-up, unless that was typed too.

        Raises:
            InputError: if what was typed cannot be read.
        """
        typed, recipe = read_options(self.options), REGISTRY.get(self.schedule)
        has_warm_up = recipe is not None and "warm_up" in recipe.options and "warm_up" not in dict(typed)
        return (*typed, ("warm_up", self.warm_up)) if has_warm_up and self.warm_up >= 0 else typed

    def searched(self) -> Options:
        """What a schedule that searches within a limit is told of costs and device; nothing if it finds no order so."""
        recipe = REGISTRY.get(self.schedule)
        if self.limit is None or recipe is None or "memory_limit" not in recipe.options:
            return ()
        return () if self.options.strip() else _searched(replace(self, moves=()))

    def predict(self) -> Prediction:
        """What the simulator says; the last few answers are kept, unless they are large.

        Raises:
            ScheduleError: if the schedule does not exist for these numbers.
            CostError: if a cost cannot be.
        """
        program = self.program()
        return Prediction(program, (_recent if is_kept(program) else _predicted)(self, program))

    def share(self) -> RankShare:
        """The costs, of a rank's share of the model, so that every schedule has equal work.

        Raises:
            CostError: if a cost cannot be.
        """
        backward = self.forward * self.backward_ratio
        return Costs.per_rank_share(
            forward=self.forward,
            backward=backward,
            backward_weight=backward * self.weight_share,
            overlap=None if self.overlap_share == 1 else (self.forward + backward) * self.overlap_share,
            recompute=self.forward * self.recompute,
            recompute_for=self.recompute_for,
            fixed=self.fixed,
            time_factor=_one_of(self.n_ranks, self.slow_rank, self.slow_factor),
            micro_batch_factor=_one_of(self.n_micro_batches, self.long_micro_batch, self.long_factor),
            optimizer=self.update,
            latency=self.latency,
            bandwidth=self.bandwidth,
            links=self._links(),
            sharing=self.sharing,
            message_bytes=self.message_bytes,
            **self._bytes(),
            jitter=self.jitter,
            seed=self.seed,
            delays={self.late_action: self.late} if self.late_action.strip() and self.late else {},
        )

    @property
    def limit(self) -> float | None:
        """Bytes of a rank's device; None where it has no limit."""
        return self.memory_limit or None

    def _bytes(self) -> dict[str, float | None]:
        kept = None if self.kept_share == 1 else self.activation_bytes * self.kept_share
        return {
            "activation_bytes": self.activation_bytes,
            "weight_gradient_bytes": kept if self.activation_bytes else None,
            "recompute_bytes": self.recompute_bytes,
            "parameter_bytes": self.parameter_bytes,
            "optimizer_bytes": self.parameter_bytes * self.optimizer_ratio,
        }

    def _links(self) -> npt.NDArray[np.int64] | None:
        return node_links(self.n_ranks, ranks_per_node=self.ranks_per_node) if self.ranks_per_node else None

    def links(self) -> Costs:
        """The link model of a run, which knows the size of its messages itself."""
        return Costs(latency=self.latency, bandwidth=self.bandwidth, links=self._links(), sharing=self.sharing)


@lru_cache(maxsize=8)
def _searched(settings: Settings) -> Options:
    point = Point(settings.schedule, settings.n_ranks, settings.n_micro_batches, settings.n_chunks)
    try:
        told = tuple(search_options(point, settings.share(), settings.limit).items())
        _program(*point, told)
    except ScheduleError:
        return ()  # the picture then shows by how much it is too much
    return told


def _one_of(count: int, which: int, factor: float) -> float | list[float]:
    """`factor` for one of `count`, where that changes anything."""
    if factor == 1 or not 0 <= which < count:
        return 1.0
    return [factor if one == which else 1.0 for one in range(count)]


class Prediction(NamedTuple):
    """A program, and what it would do."""

    program: Program
    trace: Trace


def is_kept(program: Program) -> bool:
    """Whether what it would do is kept for a while: not where that takes much room."""
    return program.n_actions <= _MOST_KEPT


def _predicted(settings: Settings, program: Program) -> Trace:
    share = settings.share()
    whole = _with_updates(program) if settings.update and program.has_backward else program
    if settings.messages == "free":
        return simulate(whole, share.for_program(whole))
    with_messages = _with_messages(whole)
    rule: Any = settings.messages
    return simulate(with_messages, share.for_program(with_messages), messages=rule)


_recent = lru_cache(maxsize=4)(_predicted)
_with_updates = lru_cache(maxsize=8)(add_updates)  # kept, and with them their graphs: a slider rebuilds nothing
_with_messages = lru_cache(maxsize=8)(add_messages)


@lru_cache(maxsize=8)
def _edited(program: Program, moves: tuple[tuple[str, int], ...]) -> Program:
    for action, slot in moves:
        program = move(program, action, slot=slot)
    return program


@lru_cache(maxsize=8)
def _program(
    name: str,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int | None,
    options: Options,
) -> Program:
    further: dict[str, Any] = dict(options)
    return schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks, **further)
