"""All the ranks' orders: which actions, on which rank, in which order, and nothing about time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import Action, Kind, Overlap
from explorer.core.placement import Placement
from explorer.errors import ProgramError

Ints = npt.NDArray[np.int32]


class Waits(NamedTuple):
    """Waits beyond those every pipeline has: hazards between items, asynchronous weight versions.

    Attributes:
        after: (n,) int64, index of the action that must end first.
        before: (n,) int64, index of the action that then may begin.
        lag: (n,) float64, seconds between the two.
    """

    after: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    lag: npt.NDArray[np.float64]


class RankOrder(NamedTuple):
    """One rank's order as columns of equal length, one action a slot; segments are 0 unless given."""

    kind: npt.NDArray[np.int8]
    stage: Ints
    micro_batch: Ints
    segment: Ints | None = None


@dataclass(frozen=True, eq=False)
class Program:
    """The slots of each rank in order, stored as arrays and read as Actions.

    A slot holds the actions begun together, nearly always one. There is no padding: idle time is a result.
    Actions lie rank by rank in order; rank r owns slots ``rank_offsets[r]`` to ``rank_offsets[r + 1]``, and slot
    k the actions ``slot_offsets[k]`` to ``slot_offsets[k + 1]``.

    Attributes:
        name: of the schedule that made it, or the user's own.
        placement: which rank runs which stage for which micro-batch.
        n_micro_batches: number of micro-batches in a step.
        kind, stage, micro_batch, segment, peer: (n_actions,), columns of the actions; −1 = does not apply.
        slot_offsets: (n_slots + 1,) int64, where each slot's actions begin.
        rank_offsets: (n_ranks + 1,) int64, where each rank's slots begin.
        n_segments: parts a sequence is cut into; 1 = not cut.
        waits: further waits, or None.
        capacities: (n_stages − 1,) int64, how many finished items fit between a stage and the next; None = any.
    """

    name: str
    placement: Placement
    n_micro_batches: int
    kind: npt.NDArray[np.int8]
    stage: Ints
    micro_batch: Ints
    segment: Ints
    peer: Ints
    slot_offsets: npt.NDArray[np.int64]
    rank_offsets: npt.NDArray[np.int64]
    n_segments: int = 1
    waits: Waits | None = None
    capacities: npt.NDArray[np.int64] | None = field(default=None)

    @classmethod
    def from_orders(
        cls,
        name: str,
        placement: Placement,
        n_micro_batches: int,
        orders: Sequence[str | Iterable[Action | Overlap | str]],
        *,
        n_segments: int = 1,
        waits: Waits | None = None,
        capacities: npt.NDArray[np.int64] | None = None,
    ) -> Program:
        """A program from one order a rank, of Actions, Overlaps or texts: ``["0F0", "0B0"]`` or ``"0F0 0B0"``.

        Raises:
            ProgramError: if there is not one order for each rank.
            InputError: if a text does not name an action.
        """
        if len(orders) != placement.n_ranks:
            raise ProgramError(f"a program needs one order a rank, {placement.n_ranks} here; got {len(orders)}")
        slots = [[_read_slot(entry) for entry in _words(order)] for order in orders]
        flat = [slot for order in slots for slot in order]
        columns = np.array([action for slot in flat for action in slot], np.int32).reshape(-1, 5)
        return cls(
            name=name,
            placement=placement,
            n_micro_batches=n_micro_batches,
            kind=columns[:, 0].astype(np.int8),
            stage=np.ascontiguousarray(columns[:, 1]),
            micro_batch=np.ascontiguousarray(columns[:, 2]),
            segment=np.ascontiguousarray(columns[:, 3]),
            peer=np.ascontiguousarray(columns[:, 4]),
            slot_offsets=_offsets([len(slot) for slot in flat]),
            rank_offsets=_offsets([len(order) for order in slots]),
            n_segments=n_segments,
            waits=waits,
            capacities=capacities,
        )

    @classmethod
    def from_columns(
        cls, name: str, placement: Placement, n_micro_batches: int, orders: Sequence[RankOrder], *, n_segments: int = 1
    ) -> Program:
        """A program from one RankOrder a rank: the fast way, without an object for each action."""
        kind = np.concatenate([order.kind for order in orders]).astype(np.int8)
        zeros = np.zeros(len(kind), np.int32)
        cut = any(order.segment is not None for order in orders)
        segments = [np.zeros_like(o.stage) if o.segment is None else o.segment for o in orders] if cut else []
        return cls(
            name=name,
            placement=placement,
            n_micro_batches=n_micro_batches,
            kind=kind,
            stage=np.concatenate([order.stage for order in orders]).astype(np.int32),
            micro_batch=np.concatenate([order.micro_batch for order in orders]).astype(np.int32),
            segment=np.concatenate(segments).astype(np.int32) if cut else zeros,
            peer=zeros - 1,
            slot_offsets=np.arange(len(kind) + 1, dtype=np.int64),
            rank_offsets=_offsets([len(order.kind) for order in orders]),
            n_segments=n_segments,
        )

    @property
    def n_ranks(self) -> int:
        """Number of pipeline ranks."""
        return self.placement.n_ranks

    @property
    def n_stages(self) -> int:
        """Number of stages of the model."""
        return self.placement.n_stages

    @property
    def n_actions(self) -> int:
        """Number of actions over all ranks."""
        return len(self.kind)

    @property
    def n_slots(self) -> int:
        """Number of slots over all ranks."""
        return len(self.slot_offsets) - 1

    @cached_property
    def slot_of_action(self) -> npt.NDArray[np.int64]:
        """(n_actions,) the slot each action is in, counted over all ranks."""
        return np.repeat(np.arange(self.n_slots), np.diff(self.slot_offsets))

    @cached_property
    def rank_of_slot(self) -> Ints:
        """(n_slots,) the rank each slot is on."""
        return np.repeat(np.arange(self.n_ranks, dtype=np.int32), np.diff(self.rank_offsets))

    @cached_property
    def rank_of_action(self) -> Ints:
        """(n_actions,) the rank each action is on."""
        return np.asarray(self.rank_of_slot[self.slot_of_action])

    @cached_property
    def has_backward(self) -> bool:
        """Whether this is a training program; a forward-only one has neither B nor I."""
        return bool(np.isin(self.kind, (Kind.B, Kind.I, Kind.W)).any())

    @cached_property
    def splits_backward(self) -> bool:
        """Whether some backward is cut into its input and its weight part."""
        return bool((self.kind == Kind.W).any())

    def action(self, index: int) -> Action:
        """The action at `index` of the columns."""
        return Action(
            Kind(int(self.kind[index])),
            int(self.stage[index]),
            int(self.micro_batch[index]),
            int(self.segment[index]),
            int(self.peer[index]),
        )

    def slot(self, slot: int) -> Action | Overlap:
        """What slot number `slot`, counted over all ranks, holds."""
        actions = [self.action(i) for i in range(self.slot_offsets[slot], self.slot_offsets[slot + 1])]
        return actions[0] if len(actions) == 1 else Overlap(actions)

    def order(self, rank: int) -> list[Action | Overlap]:
        """The order of one rank, as objects: for reading, tests and small programs."""
        return [self.slot(slot) for slot in range(self.rank_offsets[rank], self.rank_offsets[rank + 1])]

    def __str__(self) -> str:
        return "\n".join(f"rank {rank}: " + " ".join(map(str, self.order(rank))) for rank in range(self.n_ranks))

    def __repr__(self) -> str:
        return (
            f"Program({self.name!r}, n_ranks={self.n_ranks}, n_stages={self.n_stages}, "
            f"n_micro_batches={self.n_micro_batches}, n_actions={self.n_actions})"
        )


def _words(order: str | Iterable[Action | Overlap | str]) -> Iterable[Action | Overlap | str]:
    return order.split() if isinstance(order, str) else order


def _read_slot(entry: Action | Overlap | str) -> tuple[Action, ...]:
    if isinstance(entry, str):
        return (Action.parse(entry),)
    return (entry,) if isinstance(entry, Action) else tuple(entry)


def _offsets(lengths: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
