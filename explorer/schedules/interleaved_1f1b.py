"""Interleaved 1F1B: several smaller stages a rank, a smaller bubble, more messages."""

from __future__ import annotations

from explorer.core import Program
from explorer.errors import ScheduleError
from explorer.schedules.limits import check_dialect, check_fits, check_range
from explorer.schedules.recipe import check_counts
from explorer.schedules.rounds import one_f_one_b_in_rounds

_TITLE = "interleaved 1F1B"


def interleaved_1f1b(
    *,
    n_ranks: int,
    n_micro_batches: int,
    n_chunks: int = 2,
    group_size: int | None = None,
    dialect: str = "megatron",
) -> Program:
    """1F1B over `n_chunks` stages a rank: the bubble is n_chunks times smaller.

        rank 0  0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1      stages 0 and 2
        rank 1   .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1  .       stages 1 and 3

    Micro-batches go round in groups of N: a rank runs its first stage for N of them, then its second for the same
    ones, and so on. Rank r begins with 2(P−1−r) + (v−1)N forwards, and holds one more pair of stage and micro-batch
    at most. With equal stages and F, B of a rank's share, the bubble is (P−1)(F+B)/v for M a multiple of N ≥ P.

    Args:
        n_ranks: at least 2, since on one rank there is nothing to interleave; torch takes 1.
        n_micro_batches: for "megatron" M mod N is 0 or at least P, so a multiple of P unless N is given; for "torch"
            a multiple of the rounds, of which there are max(1, floor(M/P)).
        n_chunks: at least 2; with 1 it would be 1f1b. Torch takes 1.
        group_size: N, from P to M, or M itself where that is below P; larger ones hide messages and hold more.
            None for P. Torch chooses it itself: M divided by the rounds.
        dialect: "megatron" or "torch"; the order follows from N, the legal numbers differ.

    Raises:
        ScheduleError: if a number is not among these.

    Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2, figure 4; order of Megatron-LM's
        core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving; N of Llama 3,
        arXiv:2407.21783, section 3.3.2, figure 6; torch 2.13, ScheduleInterleaved1F1B.
    """
    check_counts(n_ranks=n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    check_dialect("interleaved_1f1b", dialect, ("megatron", "torch"))
    if dialect == "megatron":  # torch takes any
        check_range(_TITLE, "n_ranks", n_ranks, lowest=2)
    if dialect == "megatron" and n_chunks < 2:
        raise ScheduleError(
            f"{_TITLE} needs n_chunks of at least 2; got {n_chunks}; try 2, or 1f1b", argument="n_chunks", legal=(2,)
        )
    choose = _group_of_torch if dialect == "torch" else _group_of_megatron
    return one_f_one_b_in_rounds(
        "interleaved_1f1b",
        n_ranks=n_ranks,
        n_micro_batches=n_micro_batches,
        n_chunks=n_chunks,
        group_size=choose(n_ranks, n_micro_batches, group_size),
        lead=2,
    )


def _group_of_megatron(n_ranks: int, n_micro_batches: int, group_size: int | None) -> int:
    if group_size is None:
        check_fits(
            _TITLE,
            "n_micro_batches to be a multiple of n_ranks",
            f"{n_micro_batches} and {n_ranks}",
            argument="n_micro_batches",
            value=n_micro_batches,
            fits=lambda m: m % n_ranks == 0,
        )
        return n_ranks
    check_counts(group_size=group_size)
    lowest = min(n_ranks, n_micro_batches)  # fewer than P can go round only if that is all there are
    check_range(_TITLE, "group_size", group_size, lowest=lowest, highest=n_micro_batches)
    check_fits(
        _TITLE,
        "n_micro_batches mod group_size to be 0 or at least n_ranks",
        f"{n_micro_batches} mod {group_size} = {n_micro_batches % group_size} and {n_ranks}",
        argument="n_micro_batches",
        value=n_micro_batches,
        fits=lambda m: m % group_size == 0 or (m > group_size and m % group_size >= n_ranks),
    )
    return int(group_size)


def _group_of_torch(n_ranks: int, n_micro_batches: int, group_size: int | None) -> int:
    rounds = max(1, n_micro_batches // n_ranks)
    check_fits(
        f"torch's {_TITLE}",
        "n_micro_batches to be a multiple of the rounds, max(1, n_micro_batches // n_ranks)",
        f"{n_micro_batches} and {rounds}",
        argument="n_micro_batches",
        value=n_micro_batches,
        fits=lambda m: m % max(1, m // n_ranks) == 0,
    )
    its_own = n_micro_batches // rounds
    if group_size not in (None, its_own):
        raise ScheduleError(
            f"torch's {_TITLE} chooses group_size itself, {its_own} here; got {str(group_size)[:40]}; leave it out",
            argument="group_size",
            legal=(its_own,),
        )
    return its_own
