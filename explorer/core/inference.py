"""What orders alone say of a program: how many stages, micro-batches and segments, and which rank has which stage."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.core.action import Kind
from explorer.core.completeness import neighbourhood, place_of
from explorer.core.placement import Placement
from explorer.core.program import Program
from explorer.errors import ProgramError

Ints = npt.NDArray[np.int64]

_FREE = 1_000_000  # cells of a table that are never worth a refusal


def inferred(program: Program, *, n_micro_batches: int | None = None) -> Program:
    """`program` with the numbers and the placement that its orders show; those it came with do not matter.

    There are as many micro-batches as most stages run, and a stage is where most of what it does is: one wrong entry
    is then found to be wrong, instead of changing what all the others mean.

    Args:
        program: any, complete or not.
        n_micro_batches: how many there are, where that is known; None to infer it.

    Raises:
        ProgramError: if there is no forward, a stage is left out, or far too few actions are there.
    """
    if not (program.kind == Kind.F).any():
        raise ProgramError("a program runs at least one forward; got none; add them, such as 0F0")
    _check_stages(program)
    n_stages = int(program.stage.max()) + 1
    m = _usual_count(program) if n_micro_batches is None else n_micro_batches
    n_segments = len(np.unique(program.segment))
    if n_stages * m * n_segments > max(_FREE, program.n_actions):
        raise ProgramError(
            f"every stage runs every micro-batch once, so {n_stages:,} stages and {m:,} micro-batches make at least "
            f"{n_stages * m * n_segments:,} actions; got {program.n_actions:,}; add the others, or number stages and "
            "micro-batches from 0"
        )
    placement = _placement(program, n_stages, m)
    return replace(program, placement=placement, n_micro_batches=m, n_segments=n_segments)


def _check_stages(program: Program) -> None:
    """Refuse a number that no stage before it leads up to: a typing error would else make a stage of its own."""
    present = np.unique(program.stage)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    if len(gaps):
        index = int(np.flatnonzero(program.stage == present[gaps[0]])[0])
        rank, slot = place_of(program, index)
        raise ProgramError(
            f"stages are numbered from 0 without a gap; got {program.action(index)} but nothing of stage {gaps[0]}; "
            f"number the stages 0–{len(present) - 1} (rank {rank}, slot {slot}: {neighbourhood(program, rank, slot)})",
            rank=rank,
            slot=slot,
        )


def _usual_count(program: Program) -> int:
    """The number of different micro-batches that most stages run, forward or backward; of equals the larger."""
    rows = np.flatnonzero(np.isin(program.kind, (Kind.F, Kind.B, Kind.I)))
    stage_and_way = program.stage[rows].astype(np.int64) * 2 + (program.kind[rows] != Kind.F)
    pairs = np.unique(stage_and_way * 2**32 + program.micro_batch[rows] + 1)
    counts, often = np.unique(np.unique(pairs >> 32, return_counts=True)[1], return_counts=True)
    return int(counts[often == often.max()][-1])


# ── placement ───────────────────────────────────────────────────────────────────────────────────────────────────


class _Seen(NamedTuple):
    """(n_stages, n_micro_batches) the rank that runs each pair, in each direction; −1 where none does."""

    forward: Ints
    backward: Ints

    def clean(self) -> npt.NDArray[np.bool_]:
        """(n_micro_batches,) whether a micro-batch runs on all stages, and back on the same ranks."""
        same = (self.backward == self.forward) if (self.backward >= 0).any() else True
        return np.asarray(((self.forward >= 0) & same).all(axis=0))


def _placement(program: Program, n_stages: int, n_micro_batches: int) -> Placement:
    rank, stage = program.rank_of_action.astype(np.int64), program.stage.astype(np.int64)
    pairs, often = np.unique(stage * program.n_ranks + rank, return_counts=True)  # not all pairs: they may be millions
    of_stage, its_rank = np.divmod(pairs, program.n_ranks)
    most = np.lexsort((-its_rank, often, of_stage))  # the last of each stage is its rank, the lowest of equals
    usual = its_rank[most[np.append(np.flatnonzero(np.diff(of_stage[most])), -1)]].astype(np.int32)[None]
    if len(pairs) == n_stages:
        return Placement(program.n_ranks, usual)
    seen = _Seen(*(_ranks(program, kinds, n_stages, n_micro_batches) for kinds in ((Kind.F,), (Kind.B, Kind.I))))
    clean = seen.clean()
    routes = np.unique(seen.forward[:, clean].T, axis=0) if clean.any() else usual.astype(np.int64)
    route_of = np.argmax([_agreement(seen, route) for route in routes], axis=0).astype(np.int32)
    return Placement(program.n_ranks, routes.astype(np.int32), None if len(routes) == 1 else route_of)


def _agreement(seen: _Seen, route: Ints) -> Ints:
    """(n_micro_batches,) how much of each micro-batch runs where `route` says."""
    forward, backward = (of == route[:, None] for of in seen)
    return np.asarray(forward.sum(axis=0) + backward.sum(axis=0))


def _ranks(program: Program, kinds: tuple[Kind, ...], n_stages: int, n_micro_batches: int) -> Ints:
    inside = (program.micro_batch >= 0) & (program.micro_batch < n_micro_batches)
    rows = np.flatnonzero(np.isin(program.kind, kinds) & inside)
    ranks = np.full((n_stages, n_micro_batches), -1, np.int64)
    ranks[program.stage[rows], program.micro_batch[rows]] = program.rank_of_action[rows]
    return ranks
