"""Pre-flight rules on micro-batches: how many, what they hold, and what the loss makes of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import torch

from explorer.core import Costs, Program
from explorer.errors import ScheduleError
from explorer.execute.checks import IGNORED, count_labels
from explorer.execute.preflight_case import Case
from explorer.execute.preflight_report import NOTE, WARNING, Finding
from explorer.schedules import REGISTRY, schedule
from explorer.simulate import simulate

_FEWEST_OFFSETS = 3


def few_micro_batches(case: Case) -> Iterator[Finding]:
    """Fewer micro-batches than stages never fill the pipeline."""
    program, n, n_stages = case.program, case.n_micro_batches, case.program.n_stages
    if n >= n_stages or not program.has_backward or program.n_ranks == 1:
        return
    came = f"m={n} is below total stages {n_stages}"
    now, more = _bubble(program), _same_with(program, n_stages)
    if more is not None:
        came += f": by simulation {now:.1%} of the ranks' time is idle, {_bubble(more):.1%} with {n_stages}"
    yield Finding(
        WARNING,
        "a pipeline is full while there are at least as many micro-batches as stages",
        came,
        f"try {n_stages} micro-batches",
        "n_micro_batches",
        (n_stages,),
    )


def torchs_own_rule(case: Case) -> Iterator[Finding]:
    """What this run does and torch's own schedule class of that name refuses."""
    refusal = dialect_refusal(case.program, "torch")
    if refusal is not None:
        found = Finding.of(refusal)
        yield found._replace(severity=WARNING, advice=f"this run does it all the same; for torch's own {found.advice}")


def dialect_refusal(program: Program, dialect: str) -> ScheduleError | None:
    """Why the schedule that `program` is named after does not exist for its numbers in a dialect, or None."""
    recipe = REGISTRY.get(program.name)
    if recipe is None or "dialect" not in recipe.options or program.n_stages % program.n_ranks:
        return None
    counts = {"n_ranks": program.n_ranks, "n_chunks": program.n_stages // program.n_ranks}
    try:
        schedule(program.name, n_micro_batches=program.n_micro_batches, dialect=dialect, **counts)
    except ScheduleError as error:
        return error if error.argument == "n_micro_batches" else None
    return None


def parts(case: Case) -> Iterator[Finding]:
    """What each micro-batch is given."""
    n = case.n_micro_batches
    shapes = ", ".join(str(tuple(value.shape)) for value in case.inputs[0])
    yield Finding(NOTE, "a batch is cut along its first axis", f"{n} micro-batches of {shapes}", "")
    for place in range(len(case.inputs[0])):
        whole = torch.cat([part[place] for part in case.inputs])
        if _are_offsets(whole):
            given = " and ".join(str(part[place].tolist()) for part in case.inputs[:2])
            yield Finding(
                WARNING,
                "offsets into packed sequences begin at 0 in every micro-batch",
                f"input {place}, {whole.tolist()[:8]}, looks like offsets and is cut into {given}",
                "give each micro-batch offsets of its own as one row, or pad the sequences to one length",
                "batch",
            )


def uneven_labels(case: Case) -> Iterator[Finding]:
    """A mean over labels is another one in each micro-batch if they hold different numbers of them."""
    if case.targets is None or case.targets[0].is_floating_point():
        return
    counts = [count_labels([target]) for target in case.targets]
    if len(set(counts)) > 1:
        yield Finding(
            WARNING,
            "a step's loss is the mean over its micro-batches, each of which averages over its own labels",
            f"got micro-batches with {min(counts)} to {max(counts)} labels that are not {IGNORED}, so that the mean "
            "of means is not the mean over all labels",
            "sum over a micro-batch's labels, times n_micro_batches, divided by the whole batch's number of them",
            "loss",
        )


def loss_of_rows(case: Case) -> Iterator[Finding]:
    """A loss that averages gives the same for every row twice, one that sums gives twice as much."""
    if case.loss is None or case.targets is None or not isinstance(case.output, torch.Tensor):
        return
    target = case.targets[0]
    if not case.output.ndim or len(case.output) != len(target):
        return
    try:
        with torch.no_grad():
            once = float(case.loss(case.output, target))
            twice = float(case.loss(torch.cat([case.output] * 2), torch.cat([target] * 2)))
    except Exception:  # noqa: BLE001  a loss may want exactly the rows of a micro-batch; then there is nothing to say
        return
    if math.isclose(once, twice, rel_tol=1e-2) or not math.isfinite(once) or not once:
        return
    n = case.n_micro_batches
    if math.isclose(twice, 2 * once, rel_tol=1e-2):
        came = f"this one sums over them, so a step's loss and gradients are 1/{n} of the whole batch's"
        advice = 'use reduction="mean", or know that the step divides by n_micro_batches'
    else:
        came = f"this one gives {once:.4g} for a micro-batch and {twice:.4g} for its rows twice: it looks at the batch"
        advice = "its value depends on n_micro_batches; compare rows within a micro-batch only"
    yield Finding(WARNING, "a loss averages over the rows it is given", came, advice, "loss")


def cores(case: Case) -> Iterator[Finding]:
    """Processes without a core of their own wait for each other's."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n = case.program.n_ranks
    if case.backend == "processes" and n > n_cores:
        yield Finding(
            WARNING,
            "ranks in processes need a core each to show the schedule's own times",
            f"got {n} ranks on {n_cores} cores",
            f'try at most {n_cores} ranks, or backend="kernel"',
            "n_ranks",
            (n_cores,),
        )


def _are_offsets(value: torch.Tensor) -> bool:
    if value.ndim != 1 or value.is_floating_point() or value.dtype == torch.bool or len(value) < _FEWEST_OFFSETS:
        return False
    return int(value[0]) == 0 and bool((value.diff() >= 0).all()) and int(value[-1]) > len(value) - 1


def _bubble(program: Program) -> float:
    costs = Costs.per_rank_share(forward=1, backward=2).for_program(program)
    return float(simulate(program, costs).bubble_ratio)


def _same_with(program: Program, n_micro_batches: int) -> Program | None:
    """The schedule of that name with as many micro-batches, where there is one."""
    if program.name not in REGISTRY or program.n_stages % program.n_ranks:
        return None
    try:
        n_chunks = program.n_stages // program.n_ranks
        return schedule(program.name, n_ranks=program.n_ranks, n_micro_batches=n_micro_batches, n_chunks=n_chunks)
    except ScheduleError:
        return None
