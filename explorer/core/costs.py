"""Seconds and bytes of actions and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core.action import COMPUTE_KINDS, Action, Kind, among
from explorer.core.cost_checks import check_costs, shape_error
from explorer.core.graph import Graph
from explorer.core.links import LinkSharing
from explorer.core.program import Program
from explorer.core.rules import BACKWARD_MESSAGE
from explorer.errors import CostError

Floats = npt.NDArray[np.float64]
Amount = float | npt.ArrayLike

_PER_STAGE = (
    *("forward", "backward", "backward_input", "backward_weight", "overlap", "recompute", "optimizer"),
    *("activation_bytes", "weight_gradient_bytes", "recompute_bytes", "parameter_bytes", "optimizer_bytes"),
)
# what an action of one of several segments takes a part of; memory is divided where it is modelled
_PER_SEGMENT = ("forward", "backward", "backward_input", "backward_weight", "overlap", "recompute", "message_bytes")
_TIMES = ("forward", "backward", "backward_input", "backward_weight", "recompute", "optimizer")
_SENDS = {Kind.F: Kind.SEND_F, Kind.B: Kind.SEND_B, Kind.I: Kind.SEND_B}


@dataclass(frozen=True, eq=False, kw_only=True)
class Costs:
    """What one action of one stage costs; a scalar holds for all.

    Seconds and bytes per *stage* are scalars, (n_stages,), (n_stages, n_micro_batches) or, of each part of a cut
    sequence, (n_stages, n_micro_batches, n_segments); those of links scalars or (n_ranks, n_ranks), from row to
    column; `time_factor` is a scalar or (n_ranks,), `micro_batch_factor` one or (n_micro_batches,).

    Attributes:
        forward: seconds of F.
        backward: seconds of B. None: I + W where both are given, else twice `forward`.
        backward_input: seconds of I. None: half of B, or B − W where W is given.
        backward_weight: seconds of W. None: half of B, or B − I where I is given.
        overlap: seconds of an F and a B begun together, as one, by the forward's stage. None: their sum.
        fixed: seconds that every compute action takes besides.
        recompute: seconds of R; in a program without R actions they are part of each B or I instead.
        recompute_for: "inputs": I alone pays for it, having kept what W needs; "both": I and W each pay.
        optimizer: seconds of U.
        latency: seconds from the end of an action to the arrival of an empty message on another rank.
        bandwidth: bytes per second of a link.
        links: the shared links that messages pass, as `explorer.node_links` numbers those of nodes: whole numbers,
            (n_ranks, n_ranks) or, with several on the way, (n_ranks, n_ranks, n_links_on_the_way); −1 = none. Messages
            on a link at once hinder each other. None: no message ever hinders another.
        sharing: how: "fair": each of k messages on a link moves at 1/k of its bandwidth; "queue": one after the other.
            `explorer.core.links` says it exactly.
        time_factor: how many times as long a rank takes as it should; 2 = half as fast.
        micro_batch_factor: how many times as long the computing of a micro-batch takes, as of longer sequences.
        activation_bytes: bytes one micro-batch keeps on a stage from F until its backward has ended.
        weight_gradient_bytes: bytes it keeps instead from the end of I to the end of W. None: as many, until W.
        recompute_bytes: bytes that a backward holds besides from its start, having run its forward again.
        parameter_bytes: bytes of a stage's parameters; gradients are as large.
        optimizer_bytes: bytes of what the optimizer keeps for a stage.
        message_bytes: bytes of what a stage hands to the next, and of the gradient that comes back for it.
        jitter: how much compute actions vary: the standard deviation of their seconds as a share of them, drawn for
            each from a log-normal distribution whose mean is 1.
        seed: of the jitter; the same seed gives the same trace.
        delays: action → seconds it takes besides, as ``{"2F3": 0.5}``: a hiccup.
        message_delays: action → seconds that what it sends to another rank is on its way besides, as ``{"2F3": 0.5}``.
    """

    forward: Amount = 1.0
    backward: Amount | None = None
    backward_input: Amount | None = None
    backward_weight: Amount | None = None
    overlap: Amount | None = None
    fixed: float = 0.0
    recompute: Amount = 0.0
    optimizer: Amount = 0.0
    latency: Amount = 0.0
    bandwidth: Amount = np.inf
    links: npt.ArrayLike | None = None
    sharing: LinkSharing = "fair"
    time_factor: Amount = 1.0
    micro_batch_factor: Amount = 1.0
    activation_bytes: Amount = 0.0
    weight_gradient_bytes: Amount | None = None
    recompute_bytes: Amount = 0.0
    parameter_bytes: Amount = 0.0
    optimizer_bytes: Amount = 0.0
    message_bytes: Amount = 0.0
    recompute_for: str = "inputs"
    jitter: float = 0.0
    seed: int = 0
    delays: Mapping[str, float] = field(default_factory=dict)
    message_delays: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_costs(self)

    @staticmethod
    def per_rank_share(**amounts: Any) -> RankShare:
        """Costs of a *rank's* share of the model, which `for_program` divides among its stages.

        Comparing schedules needs equal work: with twice the stages each costs half.

        Args:
            amounts: as the attributes of Costs; what is per stage there may be (n_ranks,) here.
        """
        return RankShare(Costs(**amounts))

    def action_seconds(self, program: Program) -> Floats:
        """(n_actions,) seconds each action takes by itself; messages take none of their rank's time."""
        shape = self._shape(program)
        table = self._table(program, shape)
        if shape[1:] == (1, 1):
            seconds = table.reshape(-1).take(program.kind.astype(np.intp) * shape[0] + program.stage)
        else:
            segment = program.segment if shape[2] > 1 else 0
            seconds = table[program.kind, program.stage, np.maximum(program.micro_batch, 0), segment]
        if self.jitter:
            seconds = seconds * self._varied(program)
        if np.any(np.asarray(self.micro_batch_factor) != 1.0):
            computes = np.isin(program.kind, COMPUTE_KINDS)
            seconds = np.where(computes, seconds * self._by_micro_batch(program)[program.micro_batch], seconds)
        if np.any(np.asarray(self.time_factor) != 1.0):
            seconds = seconds * self._by_rank("time_factor", program)[program.rank_of_action]
        return np.asarray(seconds + self._late(program, "delays") if self.delays else seconds)

    def _table(self, program: Program, shape: tuple[int, ...]) -> Floats:
        """(n_kinds, *shape) seconds of each kind of action."""
        forward = self._by_stage("forward", program, shape)
        full, inputs, weights = self._backwards(program, forward, shape)
        recompute = self._by_stage("recompute", program, shape)
        if np.any(recompute) and not (program.kind == Kind.R).any():
            full, inputs = full + recompute, inputs + recompute
            weights = weights + recompute if self.recompute_for == "both" else weights
        of_kind = {Kind.F: forward, Kind.B: full, Kind.I: inputs, Kind.W: weights, Kind.R: recompute}
        of_kind = {kind: seconds + self.fixed for kind, seconds in of_kind.items()}
        of_kind[Kind.U] = self._by_stage("optimizer", program, shape)
        zero = np.zeros(shape)
        return np.stack([of_kind.get(kind, zero) for kind in Kind])

    def _shape(self, program: Program) -> tuple[int, ...]:
        """(n_stages, n_micro_batches, n_segments), or 1 for what no time depends on."""
        depth = max(np.ndim(getattr(self, name)) for name in _TIMES if getattr(self, name) is not None)
        whole = (program.n_stages, program.n_micro_batches, program.n_segments)
        return tuple(n if place < max(depth, 1) else 1 for place, n in enumerate(whole))

    def rank_factors(self, program: Program) -> Floats:
        """(n_ranks,) how many times as long everything takes on each rank: `time_factor`."""
        return self._by_rank("time_factor", program)

    def slot_seconds(self, program: Program) -> Floats:
        """(n_slots,) seconds each slot takes: the sum of its actions, or `overlap` for an F with a backward."""
        actions = self.action_seconds(program)
        if program.n_slots == program.n_actions:
            return actions
        seconds = np.add.reduceat(actions, program.slot_offsets[:-1])
        if self.overlap is not None:
            forward = (program.kind == Kind.F) & (np.diff(program.slot_offsets)[program.slot_of_action] > 1)
            rows = np.flatnonzero(forward)
            slot = program.slot_of_action[rows]
            place = program.stage[rows], program.micro_batch[rows], program.segment[rows]
            amount = self._by_stage("overlap", program)[place]
            factor = self._by_rank("time_factor", program)[program.rank_of_slot[slot]]
            seconds[slot] = (amount + self.fixed) * factor * self._by_micro_batch(program)[program.micro_batch[rows]]
        return np.asarray(seconds)

    def edge_seconds(self, graph: Graph) -> Floats:
        """(n_edges,) seconds that pass between the two ends of each edge: a message's way, or a lag."""
        seconds = self.message_seconds(graph) if len(graph.messages) else np.zeros(1)
        if not seconds.any():
            return graph.dependencies.lag
        lag = graph.dependencies.lag.copy()
        lag[graph.messages] += seconds
        return lag

    def message_seconds(self, graph: Graph) -> Floats:
        """(n_messages,) seconds each of `graph.messages` is on its way: latency + bytes / bandwidth."""
        alike = all(np.ndim(amount) == 0 for amount in (self.latency, self.bandwidth, self.message_bytes))
        if alike and not self.message_delays:
            one = np.asarray(self.latency, float) + np.asarray(self.message_bytes, float) / self.bandwidth
            return np.broadcast_to(one, len(graph.messages))
        return np.asarray(self.message_latency(graph) + self.moving_seconds(graph))

    def message_latency(self, graph: Graph) -> Floats:
        """(n_messages,) seconds each of `graph.messages` is on its way besides those in which its bytes move."""
        latency = self._by_message("latency", graph)
        if not self.message_delays:
            return latency
        late = self._late(graph.program, "message_delays")
        return np.asarray(latency + late[graph.dependencies.source[graph.messages]])

    def moving_seconds(self, graph: Graph) -> Floats:
        """(n_messages,) seconds in which the bytes of each of `graph.messages` move, with nothing in their way."""
        return np.asarray(self.bytes_of_messages(graph) / self._by_message("bandwidth", graph))

    def bytes_of_messages(self, graph: Graph) -> Floats:
        """(n_messages,) bytes that each of `graph.messages` carries."""
        program, edges = graph.program, graph.dependencies
        if np.ndim(self.message_bytes) == 0:
            return np.broadcast_to(np.asarray(self.message_bytes, float), len(graph.messages))
        source = edges.source[graph.messages]
        # stage s sends its output forward, and stage s + 1 sends the gradient of that same output back
        stage = program.stage[source] - (edges.message[graph.messages] == BACKWARD_MESSAGE)
        return np.asarray(
            self._by_stage("message_bytes", program)[stage, program.micro_batch[source], program.segment[source]]
        )

    def bytes_of_stage(self, name: str, program: Program) -> Floats:
        """(n_stages, n_micro_batches, n_segments) of one of the attributes that are bytes."""
        return self._by_stage(name, program)

    def _varied(self, program: Program) -> Floats:
        """(n_actions,) what the jitter multiplies each action's seconds with."""
        spread = np.log1p(self.jitter**2)  # of the logarithm, for this deviation around a mean of 1
        drawn = np.random.default_rng(self.seed).standard_normal(program.n_actions)
        return np.where(np.isin(program.kind, COMPUTE_KINDS), np.exp(np.sqrt(spread) * drawn - spread / 2), 1.0)

    def _late(self, program: Program, name: str) -> Floats:
        """(n_actions,) seconds that single actions, or what they send, take besides."""
        late = np.zeros(program.n_actions)
        for text, seconds in getattr(self, name).items():
            action = Action.parse(str(text))
            sends = _SENDS[action.kind] if name == "message_delays" and action.kind in _SENDS else action.kind
            found = among(program.kind, action.kind, sends) & (program.stage == action.stage)
            found &= (program.micro_batch == action.micro_batch) & (program.segment == action.segment)
            if not found.any():
                raise CostError(f"a delay is of an action of the program; it has no {text}", argument=name)
            late[found] += seconds
        return late

    def _backwards(self, program: Program, forward: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
        """B, I and W, each from what is given of them."""
        given = {
            name: None if getattr(self, name) is None else self._by_stage(name, program, shape)
            for name in ("backward", "backward_input", "backward_weight")
        }
        full, inputs, weights = given.values()
        if full is None:
            full = inputs + weights if inputs is not None and weights is not None else 2 * forward
        if inputs is None:
            inputs = full / 2 if weights is None else np.maximum(full - weights, 0.0)
        if weights is None:
            weights = np.maximum(full - inputs, 0.0)
        return full, inputs, weights

    def _by_stage(self, name: str, program: Program, to: tuple[int, ...] | None = None) -> Floats:
        """The amount broadcast to `to`, or by stage, micro-batch and segment."""
        value = np.asarray(getattr(self, name), np.float64)
        shape = (program.n_stages, program.n_micro_batches, program.n_segments)
        if value.shape not in ((), shape[:1], shape[:2], shape):
            wanted = f"a number, ({shape[0]},) or {shape[:2]}, by stage and micro-batch"
            raise shape_error(name, value, wanted if shape[2] == 1 else f"{wanted}, or {shape} with the segment")
        missing = 3 - value.ndim if value.ndim else 0
        return np.broadcast_to(value.reshape(value.shape + (1,) * missing), to or shape)

    def _by_rank(self, name: str, program: Program) -> Floats:
        value = np.asarray(getattr(self, name), np.float64)
        if value.shape not in ((), (program.n_ranks,)):
            raise shape_error(name, value, f"a number or ({program.n_ranks},), by rank")
        return np.broadcast_to(value, program.n_ranks)

    def _by_micro_batch(self, program: Program) -> Floats:
        value = np.asarray(self.micro_batch_factor, np.float64)
        if value.shape not in ((), (program.n_micro_batches,)):
            raise shape_error("micro_batch_factor", value, f"a number or ({program.n_micro_batches},), by micro-batch")
        return np.broadcast_to(value, program.n_micro_batches)

    def _by_link(self, name: str, program: Program) -> Floats:
        value = np.asarray(getattr(self, name), np.float64)
        shape = (program.n_ranks, program.n_ranks)
        if value.shape not in ((), shape):
            raise shape_error(name, value, f"a number or {shape}, from rank to rank")
        return np.broadcast_to(value, shape)

    def _by_message(self, name: str, graph: Graph) -> Floats:
        rank, edges = graph.program.rank_of_action, graph.dependencies
        ends = rank[edges.source[graph.messages]], rank[edges.target[graph.messages]]
        return self._by_link(name, graph.program)[ends]


@dataclass(frozen=True, eq=False)
class RankShare:
    """Costs of a rank's share of the model, before they are divided among its stages."""

    share: Costs

    def for_program(self, program: Program) -> Costs:
        """The costs per stage that give every rank of `program` this share of work."""
        amounts = {name: self._divided(name, program) for name in _PER_STAGE if getattr(self.share, name) is not None}
        if program.n_segments > 1:  # a part of the sequence is a part of the work, and of the message
            cut = [name for name in _PER_SEGMENT if getattr(self.share, name) is not None]
            whole = {**{name: getattr(self.share, name) for name in cut}, **amounts}
            amounts.update({name: np.asarray(whole[name]) / program.n_segments for name in cut})
        return replace(self.share, **amounts)  # type: ignore[arg-type]

    def _divided(self, name: str, program: Program) -> Amount:
        value = np.asarray(getattr(self.share, name), np.float64)
        if value.ndim == 1:
            if value.shape != (program.n_ranks,):
                raise shape_error(name, value, f"a number or ({program.n_ranks},), by rank, for a rank's share")
            value = value[program.placement.routes[0]]
        divided: Amount = value * (program.n_ranks / program.n_stages)
        return divided
