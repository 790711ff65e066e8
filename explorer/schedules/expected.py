"""What a schedule that searches expects its actions to cost: seconds, messages and bytes of each stage."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core import Costs, Kind, Placement, Program, RankOrder, RankShare, graph_of
from explorer.core.rules import BACKWARD_MESSAGE, FORWARD_MESSAGE
from explorer.errors import ScheduleError

Floats = npt.NDArray[np.float64]

_PARTS = (Kind.F, Kind.I, Kind.W)
_NO_MEANS = ("latency", "bandwidth", "links")  # from rank to rank


class Expected(NamedTuple):
    """Per stage; 1 second for each action, messages that take no time and 1 byte where nothing is known.

    Attributes:
        seconds: (3, n_stages) of F, I and W.
        forward_message: (n_stages,) seconds an activation is on its way to the stage.
        backward_message: (n_stages,) seconds a gradient is on its way to the stage.
        bytes: (n_stages,) that a micro-batch keeps on the stage from F until W.
    """

    seconds: Floats
    forward_message: Floats
    backward_message: Floats
    bytes: Floats


def expect(costs: Costs | RankShare | None, placement: Placement) -> Expected:
    """The mean over micro-batches of what `costs` say; of a rank's share, each stage's part of it.

    Raises:
        ScheduleError: if `costs` is something else.
        CostError: if a cost has the wrong shape.
    """
    n = placement.n_stages
    if costs is None:
        return Expected(np.ones((3, n)), np.zeros(n), np.zeros(n), np.ones(n))
    if not isinstance(costs, Costs | RankShare):
        raise ScheduleError(
            f"a schedule searches with Costs; got {type(costs).__name__}; try Costs(forward=1.0)", argument="costs"
        )
    program = _one_micro_batch(placement)
    if isinstance(costs, RankShare):
        costs = replace(costs, share=_typical(costs.share)).for_program(program)
    costs = _typical(costs)
    seconds = np.zeros((len(Kind), n))
    seconds[program.kind, program.stage] = costs.action_seconds(program)
    there, back = (_message_seconds(program, costs, message) for message in (FORWARD_MESSAGE, BACKWARD_MESSAGE))
    held = costs.bytes_of_stage("activation_bytes", program).reshape(n, -1)[:, 0]
    return Expected(seconds[list(_PARTS)], there, back, held if held.any() else np.ones(n))


def even(expected: Expected) -> Expected:
    """The same bytes, where all actions take the same and messages no time."""
    nothing = np.zeros_like(expected.forward_message)
    return Expected(np.ones_like(expected.seconds), nothing, nothing, expected.bytes)


def _one_micro_batch(placement: Placement) -> Program:
    """F, I and W of a single micro-batch on every stage."""
    orders = []
    for rank in range(placement.n_ranks):
        stages = np.flatnonzero(placement.routes[0] == rank).astype(np.int32)
        kind = np.repeat(np.array(_PARTS, np.int8), len(stages))
        orders.append(RankOrder(kind, np.concatenate([stages, stages[::-1], stages]), np.zeros_like(kind, np.int32)))
    return Program.from_columns("one micro-batch", placement, 1, orders)


def _typical(costs: Costs) -> Costs:
    """Of all micro-batches the mean, and nothing that befalls one action or message alone."""
    means = {}
    for field in fields(costs):
        value = getattr(costs, field.name)
        if value is not None and field.name not in _NO_MEANS and np.ndim(value) >= 2:
            by_stage = np.asarray(value, np.float64)
            means[field.name] = by_stage.reshape(len(by_stage), -1).mean(axis=1)
    factor = float(np.asarray(costs.micro_batch_factor, np.float64).mean())
    return replace(costs, **means, micro_batch_factor=factor, links=None, delays={}, message_delays={})


def _message_seconds(program: Program, costs: Costs, message: int) -> Floats:
    graph = graph_of(program)
    of_this_kind = graph.dependencies.message[graph.messages] == message
    seconds = np.zeros(program.n_stages)
    target = graph.dependencies.target[graph.messages[of_this_kind]]
    seconds[program.stage[target]] = costs.message_seconds(graph)[of_this_kind]
    return seconds
