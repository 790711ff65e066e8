"""All the ranks' orders: which actions, on which rank, in which order, and nothing about time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import MESSAGE_KINDS, Action, Kind, Overlap, among
from explorer.core.placement import Placement
from explorer.core.reading import check_arguments, named_wait, read_capacities, read_columns, read_orders, read_waits
from explorer.errors import InputError, ProgramError, shown

if TYPE_CHECKING:
    import pandas as pd

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
    """One rank's order as columns of equal length.

    Attributes:
        kind, stage, micro_batch: of each action.
        segment: of each action; None = all 0.
        joined: whether an action begins together with the one before it, in the same slot; None = none does.
    """

    kind: npt.NDArray[np.int8]
    stage: Ints
    micro_batch: Ints
    segment: Ints | None = None
    joined: npt.NDArray[np.bool_] | None = None


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
        weight_versions: (n_ranks,) int64, how many versions of its weights each rank keeps, which an asynchronous
            schedule needs; None = one.
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
    weight_versions: npt.NDArray[np.int64] | None = field(default=None)

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
        """A program from one order a rank, of Actions, Overlaps or texts: ``["0F0", "(0F1;0B0)"]`` or ``"0F0 0B0"``.

        Raises:
            ProgramError: if there is not one order for each rank.
            InputError: if a text does not name an action, or an argument is of another kind.
        """
        check_arguments(name, placement, n_micro_batches, n_segments)
        slots = read_orders(orders, placement.n_ranks, n_micro_batches)
        flat = [slot for order in slots for slot in order]
        columns = read_columns(flat)
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
            waits=None if waits is None else Waits(*read_waits(waits)),
            capacities=None if capacities is None else read_capacities(capacities),
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
        begins = [np.ones(len(o.kind), np.bool_) if o.joined is None else ~o.joined for o in orders]
        return cls(
            name=name,
            placement=placement,
            n_micro_batches=n_micro_batches,
            kind=kind,
            stage=np.concatenate([order.stage for order in orders]).astype(np.int32),
            micro_batch=np.concatenate([order.micro_batch for order in orders]).astype(np.int32),
            segment=np.concatenate(segments).astype(np.int32) if cut else zeros,
            peer=zeros - 1,
            slot_offsets=np.append(np.flatnonzero(np.concatenate(begins)), len(kind)).astype(np.int64),
            rank_offsets=_offsets([int(of_rank.sum()) for of_rank in begins]),
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
        return bool(among(self.kind, Kind.B, Kind.I, Kind.W).any())

    @cached_property
    def splits_backward(self) -> bool:
        """Whether some backward is cut into its input and its weight part."""
        return bool((self.kind == Kind.W).any())

    def with_waits(self, *waits: tuple[str | Action, str | Action, float]) -> Program:
        """The same program with further waits, as hazards between the items of an in-order pipeline are.

        Args:
            waits: which action must end first, which then may begin, and the seconds between the two.

        Raises:
            ProgramError: if the program has no such action.

        Example:
            >>> import explorer as ex
            >>> line = ex.schedule("forward_only", n_ranks=2, n_micro_batches=2)
            >>> ex.simulate(line.with_waits(("1F0", "0F1", 1.0))).makespan
            5.0
        """
        after, before, lag = self.waits or (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        names = [named_wait(wait) for wait in waits]
        place = self._places({action for wait in names for action in wait[:2]})
        new = [(place[first], place[then], lag) for first, then, lag in names]
        columns = zip(*new, strict=True) if new else ((), (), ())
        parts = [
            np.concatenate([old, np.array(more, old.dtype)])
            for old, more in zip((after, before, lag), columns, strict=True)
        ]
        return replace(self, waits=Waits(*parts))

    def _places(self, actions: set[Action]) -> dict[Action, int]:
        """The index of each action, whatever its peer.

        Raises:
            ProgramError: if there is none.
        """
        rows = np.flatnonzero(np.isin(self.stage, [action.stage for action in actions]))
        columns = (self.kind, self.stage, self.micro_batch, self.segment)
        there = zip(*(column[rows].tolist() for column in columns), strict=True)
        first = dict(zip(reversed([*there]), rows[::-1].tolist(), strict=True))
        for wanted in actions:
            if tuple(wanted[:4]) not in first:
                raise ProgramError(
                    f"a wait is between actions of the program; {self.name[:60]} has no {wanted}; name others"
                )
        return {action: first[tuple(action[:4])] for action in actions}

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
        """The order of one rank, as objects: for reading, tests and small programs.

        Raises:
            InputError: if there is no such rank.
        """
        if not isinstance(rank, (int, np.integer)) or not 0 <= rank < self.n_ranks:
            raise InputError(
                f"rank is a whole number from 0 to {self.n_ranks - 1}; got {shown(rank)}; try 0",
                argument="rank",
                legal=(0,),
            )
        return [self.slot(slot) for slot in range(self.rank_offsets[rank], self.rank_offsets[rank + 1])]

    def words(self) -> list[str]:
        """Each action as text; messages name their peer where it is not the rank of the next stage, or the one before.

        `Action.parse` reads each, so that nothing is lost.
        """
        elsewhere = (self.peer >= 0) & (self.peer != self._neighbour())
        names = [kind.name for kind in Kind]
        columns = (self.kind, self.stage, self.micro_batch, self.segment, np.where(elsewhere, self.peer, -1))
        return [
            f"{stage}{names[kind]}{'' if micro_batch < 0 else micro_batch}{f'.{segment}' if segment else ''}"
            f"{'' if peer < 0 else f'@{peer}'}"
            for kind, stage, micro_batch, segment, peer in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _neighbour(self) -> Ints:
        """(n_actions,) the rank that a message goes to or comes from where nothing else is said; −1 for other kinds."""
        to_next = among(self.kind, Kind.SEND_F, Kind.RECV_B)
        stage = np.clip(self.stage + np.where(to_next, 1, -1), 0, self.n_stages - 1)
        rank = self.placement.rank_of(stage, np.clip(self.micro_batch, 0, self.n_micro_batches - 1))
        return np.where(among(self.kind, *MESSAGE_KINDS), rank, -1).astype(np.int32)

    def to_frame(self) -> pd.DataFrame:
        """The orders as a DataFrame of rank, slot, kind, stage, micro_batch, segment and peer, a row an action.

        Slots count from 0 on each rank; actions begun together share one. Further waits, capacities and weight
        versions lie in its `attrs` by these names, which a file of the table does not keep. `explorer.from_frame`
        makes a program of it again.
        """
        import pandas as pd

        kind = pd.Categorical.from_codes(self.kind, categories=pd.Index([kind.name for kind in Kind]))
        slot = self.slot_of_action - self.rank_offsets[self.rank_of_action]
        columns = {name: getattr(self, name) for name in ("stage", "micro_batch", "segment", "peer")}
        frame = pd.DataFrame({"rank": self.rank_of_action, "slot": slot, "kind": kind, **columns})
        frame.attrs.update(self._extras())
        return frame

    def _extras(self) -> dict[str, list[Any]]:
        """What is more than orders, as plain values: waits as `with_waits` takes them."""
        extras: dict[str, list[Any]] = {}
        if self.waits is not None:
            after, before = ([str(self.action(index)) for index in column.tolist()] for column in self.waits[:2])
            extras["waits"] = list(zip(after, before, self.waits.lag.tolist(), strict=True))
        if self.capacities is not None:
            extras["capacities"] = self.capacities.tolist()
        if self.weight_versions is not None:
            extras["weight_versions"] = self.weight_versions.tolist()
        return extras

    def __str__(self) -> str:
        words = self.words()
        slots = [
            words[first] if last == first + 1 else f"({';'.join(words[first:last])})"
            for first, last in pairwise(self.slot_offsets.tolist())
        ]
        orders = pairwise(self.rank_offsets.tolist())
        return "\n".join(f"rank {rank}: " + " ".join(slots[first:last]) for rank, (first, last) in enumerate(orders))

    def __repr__(self) -> str:
        return (
            f"Program({self.name!r}, n_ranks={self.n_ranks}, n_stages={self.n_stages}, "
            f"n_micro_batches={self.n_micro_batches}, n_actions={self.n_actions})"
        )


def _offsets(lengths: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
