"""Whether a program has every action once, on its rank, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from explorer.core.action import PER_STAGE_KINDS, Action, Kind, among
from explorer.core.program import Program
from explorer.errors import ProgramError, shown

Counts = npt.NDArray[np.int64]

_BACKWARD = (Kind.B, Kind.I, Kind.W)
_NAMED = 3  # absent actions that a message lists
_FREE = 1_000_000  # cells of a table that are never worth a refusal


def check_complete(program: Program) -> None:
    """Refuse a program that lacks, doubles or misplaces an action; circles are the graph's to find.

    Raises:
        ProgramError: naming rank, slot and action, with the neighbourhood drawn.
    """
    _check_range(program)
    _check_size(program)
    _check_place(program)
    _check_once(program)
    _check_extras(program)


def neighbourhood(program: Program, rank: int, slot: int, *, reach: int = 3) -> str:
    """The slots of `rank` around its `slot`-th, with that one marked: ``… 0F2 [0F3] 0B0 …``."""
    first, last = int(program.rank_offsets[rank]), int(program.rank_offsets[rank + 1])
    here = first + slot
    low, high = max(first, here - reach), min(last, here + reach + 1)
    words = [f"[{program.slot(k)}]" if k == here else str(program.slot(k)) for k in range(low, high)]
    return " ".join((["…"] if low > first else []) + words + (["…"] if high < last else []))


def place_of(program: Program, index: int) -> tuple[int, int]:
    """Rank of the action at `index`, and its slot in the order of that rank."""
    rank = int(program.rank_of_action[index])
    return rank, int(program.slot_of_action[index] - program.rank_offsets[rank])


def _error(program: Program, index: int, problem: str) -> ProgramError:
    rank, slot = place_of(program, index)
    drawn = neighbourhood(program, rank, slot)
    return ProgramError(f"{problem} (rank {rank}, slot {slot}: {drawn})", rank=rank, slot=slot)


# ── nothing outside ─────────────────────────────────────────────────────────────────────────────────────────────


def _check_range(program: Program) -> None:
    per_stage = among(program.kind, *PER_STAGE_KINDS)
    outside = (program.stage < 0) | (program.stage >= program.n_stages)
    outside |= ~per_stage & ((program.micro_batch < 0) | (program.micro_batch >= program.n_micro_batches))
    outside |= (program.segment < 0) | (program.segment >= program.n_segments)
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        kinds = f"stages 0–{program.n_stages - 1} and micro-batches 0–{program.n_micro_batches - 1}"
        cut = f", segments 0–{program.n_segments - 1}" if program.n_segments > 1 else ""
        problem = f"this program has {kinds}{cut}; got {program.action(index)}, which is outside"
        raise _error(program, index, problem + _shifted(program, int(program.rank_of_action[index])))


def _shifted(program: Program, rank: int) -> str:
    """What else the order of `rank` shows if its forwards are numbered wrongly, as words; "" if they are not."""
    absent = _absent_forwards(program, rank)
    if not absent:
        return "; leave it out"
    words = f"; {' and '.join(map(str, absent[:_NAMED]))} {'is' if len(absent) == 1 else 'are'} missing"
    early = (program.rank_of_action == rank) & np.isin(program.kind, (Kind.B, Kind.I))
    early &= (program.stage == absent[0].stage) & (program.micro_batch == absent[0].micro_batch)
    if early.any():
        index = int(np.flatnonzero(early)[0])
        words += f"; {program.action(index)} in slot {place_of(program, index)[1]} so comes before its forward"
    return words + f"; number the forwards 0–{program.n_micro_batches - 1}"


def _absent_forwards(program: Program, rank: int) -> list[Action]:
    """The forwards that `rank` should have and has not, of the first stage that lacks some."""
    stages = np.flatnonzero((program.placement.routes == rank).any(axis=0))
    rows = (program.rank_of_action == rank) & (program.kind == Kind.F)
    wanted = np.arange(min(program.n_micro_batches, _FREE))
    for stage in stages.tolist():
        own = wanted[program.placement.rank_of(stage, wanted) == rank]
        lack = np.setdiff1d(own, program.micro_batch[rows & (program.stage == stage)])
        if len(lack):
            return [Action(Kind.F, stage, micro_batch) for micro_batch in lack.tolist()]
    return []


# ── everything in its place ─────────────────────────────────────────────────────────────────────────────────────


def _check_size(program: Program) -> None:
    """Refuse numbers that promise far more actions than there are, before tables of that size are made."""
    pairs = program.n_stages * program.n_micro_batches * program.n_segments
    if pairs > max(_FREE, program.n_actions):
        raise ProgramError(
            f"every stage runs every micro-batch once, so {program.n_stages:,} stages and "
            f"{program.n_micro_batches:,} micro-batches make at least {pairs:,} actions; got {program.n_actions:,}; "
            "add the others, or give the numbers of stages, micro-batches and segments that there are"
        )
    route_of = program.placement.route_of
    if route_of is not None and len(route_of) != program.n_micro_batches:
        raise ProgramError(
            f"a placement with several routes has one for each of the {program.n_micro_batches} micro-batches; "
            f"got {len(route_of)}; make it for {program.n_micro_batches}"
        )


def _check_place(program: Program) -> None:
    rank = program.rank_of_action
    per_micro_batch = program.micro_batch >= 0
    expected = program.placement.rank_of(program.stage, np.maximum(program.micro_batch, 0))
    wrong = np.where(per_micro_batch, rank != expected, ~program.placement.holds(rank, program.stage))
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        where = (
            f"belongs on rank {expected[index]}"
            if per_micro_batch[index]
            else f"belongs on a rank that holds stage {program.stage[index]}"
        )
        problem = f"the placement says where a stage runs: {program.action(index)} {where}; move it there"
        raise _error(program, index, problem)


def _check_extras(program: Program) -> None:
    if program.waits is not None:
        after, before, lag = program.waits
        if not len(after) == len(before) == len(lag):
            raise ProgramError(
                f"waits are three columns of equal length; got {len(after)}, {len(before)} and {len(lag)}"
            )
        outside = (np.minimum(after, before) < 0) | (np.maximum(after, before) >= program.n_actions)
        if outside.any():
            k = int(np.flatnonzero(outside)[0])
            raise ProgramError(
                f"a wait names actions 0–{program.n_actions - 1}; got {after[k]} and {before[k]} in wait {k}"
            )
        if not (np.isfinite(lag) & (np.asarray(lag) >= 0)).all():
            raise ProgramError(f"the lag of a wait is 0 seconds or more; got {np.min(lag):g}")
    if program.capacities is not None:
        wanted, capacities = (program.n_stages - 1,), np.asarray(program.capacities)
        if capacities.shape != wanted or (capacities < 0).any():
            raise ProgramError(
                f"capacities are {wanted[0]} counts of 0 or more, one between each stage and the next; "
                f"got {shown(capacities.tolist())}"
            )
    if program.weight_versions is not None:
        versions = np.asarray(program.weight_versions)
        if versions.shape != (program.n_ranks,) or versions.dtype.kind not in "iu" or (versions < 1).any():
            raise ProgramError(
                f"weight_versions are {program.n_ranks} whole numbers of at least 1, one a rank; "
                f"got {shown(versions.tolist())}"
            )


# ── each exactly once ───────────────────────────────────────────────────────────────────────────────────────────


def _check_once(program: Program) -> None:
    tally = _Tally(program)
    if (index := tally.doubled()) is not None:
        raise _error(program, index, f"every action runs exactly once; {_again(program, index)}; leave one out")
    if (absent := tally.missing()) is not None:
        raise _missing(program, absent)


def _again(program: Program, index: int) -> str:
    """What the action at `index` repeats, and where that is."""
    same = (program.stage == program.stage[index]) & (program.micro_batch == program.micro_batch[index])
    same &= program.segment == program.segment[index]
    alike = np.flatnonzero(same & (program.kind == program.kind[index]))
    backward = np.flatnonzero(same & np.isin(program.kind, _BACKWARD))
    twin = int(alike[0]) if len(alike) > 1 else int(backward[backward != index][0])
    rank, slot = place_of(program, twin)
    action, earlier = program.action(index), program.action(twin)
    if len(alike) > 1:
        return f"got {action} again, which is already in slot {slot} of rank {rank}"
    return f"got {action} again: {earlier} in slot {slot} of rank {rank} is a part of the same backward"


def _missing(program: Program, absent: Action) -> ProgramError:
    rank = int(program.placement.rank_of(absent.stage, absent.micro_batch))
    n_slots = int(program.rank_offsets[rank + 1] - program.rank_offsets[rank])
    slot = _room_for(program, absent, rank)
    first = int(program.rank_offsets[rank])
    before = [str(program.slot(k)) for k in range(first + max(slot - 3, 0), first + slot)]
    after = [str(program.slot(k)) for k in range(first + slot, first + min(slot + 3, n_slots))]
    drawn = [*(["…"] if slot > 3 else []), *before, f"[+{absent}]", *after, *(["…"] if slot + 3 < n_slots else [])]
    return ProgramError(
        f"every action runs exactly once; {absent} is missing from rank {rank}, which has {n_slots} slots; "
        f"add it there, such as in slot {slot}: {' '.join(drawn)}",
        rank=rank,
        slot=slot,
    )


def _room_for(program: Program, absent: Action, rank: int) -> int:
    """A slot of `rank` where `absent` could go: behind what it needs there, and behind its like."""
    rows = (program.rank_of_action == rank) & (program.stage == absent.stage)
    needs = rows & (program.micro_batch == absent.micro_batch) & (program.kind < absent.kind)
    like = rows & (program.micro_batch < absent.micro_batch) & (program.kind == absent.kind)
    behind = np.flatnonzero(needs | like)
    return place_of(program, int(behind[-1]))[1] + 1 if len(behind) else 0


@dataclass(frozen=True, eq=False)
class _Tally:
    """How often each (kind, stage, micro-batch, segment) occurs, and how often it should."""

    program: Program

    @cached_property
    def _rows(self) -> Counts:
        return np.flatnonzero(~among(self.program.kind, *PER_STAGE_KINDS))

    @cached_property
    def _key(self) -> Counts:
        p, rows = self.program, self._rows
        columns = (p.kind[rows], p.stage[rows], p.micro_batch[rows], p.segment[rows])
        return np.asarray(np.ravel_multi_index(tuple(column.astype(np.int64) for column in columns), self._shape))

    @cached_property
    def _shape(self) -> tuple[int, int, int, int]:
        p = self.program
        return (len(Kind), p.n_stages, p.n_micro_batches, p.n_segments)

    @cached_property
    def _count(self) -> Counts:
        return np.bincount(self._key, minlength=int(np.prod(self._shape))).reshape(self._shape)

    def doubled(self) -> int | None:
        """Index of the first action that was there before, or of a B beside an I."""
        again = self._count.reshape(-1)[self._key] > 1
        if again.any():
            keys = self._key[again]
            first = np.unique(keys, return_index=True)[1]
            return int(np.delete(self._rows[again], first).min())
        both = (self._count[Kind.B] > 0) & ((self._count[Kind.I] > 0) | (self._count[Kind.W] > 0))
        if both.any():
            stage, micro_batch, segment = np.argwhere(both)[0]
            p = self.program
            same = (p.stage == stage) & (p.micro_batch == micro_batch) & (p.segment == segment)
            return int(np.flatnonzero(same & np.isin(p.kind, _BACKWARD))[-1])
        return None

    def missing(self) -> Action | None:
        """The first action that should be there and is not."""
        lacks = {Kind.F: self._count[Kind.F] == 0}
        if self.program.has_backward:
            lacks[Kind.B] = (self._count[Kind.B] + self._count[Kind.I]) == 0
            lacks[Kind.W] = (self._count[Kind.I] > 0) & (self._count[Kind.W] == 0)
            lacks[Kind.I] = (self._count[Kind.W] > 0) & (self._count[Kind.I] == 0)
            lacks[Kind.B] &= ~lacks[Kind.I]
        for kind, lack in lacks.items():
            if lack.any():
                stage, micro_batch, segment = (int(i) for i in np.argwhere(lack)[0])
                return Action(kind, stage, micro_batch, segment)
        return None
