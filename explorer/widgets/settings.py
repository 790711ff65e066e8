"""What the controls say, as a value, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from explorer.core import Costs, Program, Trace
from explorer.schedules import schedule
from explorer.simulate import simulate


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

    def program(self) -> Program:
        """The program of these numbers; the last few are kept, and with them their graphs."""
        return _program(self.schedule, self.n_ranks, self.n_micro_batches, self.n_chunks)

    def predict(self) -> Prediction:
        """What the simulator says; the costs are a rank's share, so that every schedule has equal work.

        Raises:
            ScheduleError: if the schedule does not exist for these numbers.
            CostError: if a cost cannot be.
        """
        program = self.program()
        share = Costs.per_rank_share(
            forward=self.forward,
            backward=self.forward * self.backward_ratio,
            latency=self.latency,
            bandwidth=self.bandwidth,
            message_bytes=self.message_bytes,
        )
        return Prediction(program, simulate(program, share.for_program(program)))

    def links(self) -> Costs:
        """The link model of a run, which knows the size of its messages itself."""
        return Costs(latency=self.latency, bandwidth=self.bandwidth)


class Prediction(NamedTuple):
    """A program, and what it would do."""

    program: Program
    trace: Trace


@lru_cache(maxsize=8)
def _program(name: str, n_ranks: int, n_micro_batches: int, n_chunks: int | None) -> Program:
    return schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
