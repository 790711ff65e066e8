"""The files that `record` leaves, one a rank, joined into one trace."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from explorer.core import Events, MemoryChanges, Origin, Placement, Program, RankOrder, Stream, Trace, check
from explorer.core.clocks import ClockOffset, corrected, widest
from explorer.core.inference import inferred
from explorer.errors import InputError, ProgramError
from explorer.io.rank_files import PATTERN, Ints, RankFile, StepLine, read_rank_file
from explorer.io.recorded_messages import Ends, Floats, message_events
from explorer.io.recorded_updates import update_events

_SHOWN = 3  # of what a message lists


def load_recording(path: Path) -> Trace:
    """The trace of a recorded run: of a folder, or of the pipeline that one rank's file belongs to.

    Steps that not all ranks have whole are left out, as are forward-only ones beside others; a warning says so.

    Raises:
        InputError: if files are missing, of several runs, or something in them cannot be, or if clocks contradict the
            order of messages.
        ProgramError: if the order that ran is no whole program.
    """
    files = _one_run(_one_pipeline(path), path)
    numbers = _whole_steps(files)
    program = _program(files, numbers)
    offsets = _offsets(files)
    times = [_on_one_clock(file, numbers, offsets is not None) for file in files]
    zero = min(step.start.min(initial=np.inf) for of_rank in times for step in of_rank)
    of_rank = [[step.moved(zero) for step in steps] for steps in times]
    compute = [_compute(step, rank) for rank, steps in enumerate(of_rank) for step in steps]
    messages = message_events(of_rank, offsets)
    updates = [update_events(file, numbers, zero, are_several=offsets is not None) for file in files]
    memory = _memory(files, of_rank, numbers)
    return Trace(Events.concatenate(*compute, *updates, messages), program, memory, clock="real", clock_offsets=offsets)


# ── which files ─────────────────────────────────────────────────────────────────────────────────────────────────


def _one_pipeline(path: Path) -> list[RankFile]:
    """The files of one pipeline: that of the file given, else the first of the folder."""
    folder = path if path.is_dir() else path.parent
    files = [read_rank_file(file) for file in sorted(folder.glob(PATTERN))]
    if not files:
        raise InputError(
            f"a recording has a file {PATTERN} for each rank; got none in {str(folder)!r}; record one with "
            "explorer.record(folder, schedule)",
            argument="path",
        )
    groups = [tuple(file.header["group"]) for file in files]
    wanted = next((group for group, file in zip(groups, files, strict=True) if file.name == path.name), groups[0])
    others = sorted({file.name for group, file in zip(groups, files, strict=True) if not set(group) & set(wanted)})
    if others and path.is_dir():
        warnings.warn(f"{folder}: there are other pipelines; load {others[0]} for that of its rank", stacklevel=4)
    return [file for group, file in zip(groups, files, strict=True) if set(group) & set(wanted)]


def _one_run(files: list[RankFile], path: Path) -> list[RankFile]:
    """All ranks' files, in order."""
    headers = [file.header for file in files]
    for name in ("run", "n_ranks", "schedule", "n_micro_batches", "n_stages"):
        values = [header[name] for header in headers]
        if len(set(values)) > 1:
            other = next(file.name for file, value in zip(files, values, strict=True) if value != values[0])
            raise InputError(
                f"the ranks of a recording belong to one run; got {files[0].name} and {other} of different ones "
                f"({name}); leave only one run's files in {str(path)!r}",
                argument="path",
            )
    by_rank = {file.rank: file for file in files}
    missing = [rank for rank in range(headers[0]["n_ranks"]) if rank not in by_rank]
    if missing:
        group = headers[0]["group"]
        names = ", ".join(f"rank-{group[rank]:05d}.jsonl" for rank in missing[:_SHOWN])
        more = " …" if len(missing) > _SHOWN else ""
        raise InputError(
            f"a recording has a file for each of {headers[0]['n_ranks']} ranks; {names}{more} is missing from "
            f"{str(path)!r}; copy it there from its machine, or record on every rank",
            argument="path",
        )
    return [by_rank[rank] for rank in sorted(by_rank)]


# ── which steps, and what ran in them ───────────────────────────────────────────────────────────────────────────


def _whole_steps(files: Sequence[RankFile]) -> list[int]:
    """Numbers of the steps that every rank has whole; those that train, or if none does, all."""
    everywhere = set.intersection(*(set(file.steps) for file in files))
    broken = {n: file for file in files for n in sorted(file.steps) if file.steps[n].error is not None}
    for number, file in broken.items():
        warnings.warn(
            f"step {number} broke off on rank {file.rank} ({file.steps[number].error}) and is left out", stacklevel=4
        )
    apart = sorted({number for file in files for number in file.steps} - everywhere - set(broken))
    if apart:
        warnings.warn(f"step {apart[0]} is not there on every rank and is left out", stacklevel=4)
    whole = sorted(everywhere - set(broken))
    training = [number for number in whole if all(file.steps[number].trains for file in files)]
    if training and len(training) < len(whole):
        warnings.warn(f"{len(whole) - len(training)} steps without backwards are left out", stacklevel=4)
    numbers = training or whole
    if not numbers:
        raise InputError(
            "a recording has at least one step that every rank has ended; got none; let schedule.step() come to its "
            "end within explorer.record",
            argument="path",
        )
    return numbers


def _program(files: Sequence[RankFile], numbers: Sequence[int]) -> Program:
    """The order that ran, the same in every step."""
    orders = []
    for file in files:
        first = file.steps[numbers[0]].actions
        for number in numbers[1:]:
            actions = file.steps[number].actions
            if any(not np.array_equal(first[name], actions[name]) for name in ("kind", "stage", "micro_batch")):
                raise InputError(
                    f"a trace holds one order; got another in step {number} than in step {numbers[0]} on rank "
                    f"{file.rank}; record the two apart",
                    argument="path",
                )
        kind, stage, micro_batch = (first[name] for name in ("kind", "stage", "micro_batch"))
        orders.append(RankOrder(kind.astype(np.int8), stage.astype(np.int32), micro_batch.astype(np.int32)))
    header = files[0].header
    ran = Program.from_columns(header["schedule"][:80], Placement.looped(len(files)), 1, orders)
    try:
        return check(inferred(ran, n_micro_batches=header["n_micro_batches"]))
    except ProgramError as error:
        error.args = (f"what was recorded: {error}",)
        raise


# ── when ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _offsets(files: Sequence[RankFile]) -> tuple[ClockOffset, ...] | None:
    """How far each rank's clock is ahead of rank 0's; None where all read the same.

    Raises:
        InputError: if clocks differ and were not compared.
    """
    if len({file.header["clock"] for file in files}) == 1:
        return None
    for file in files:
        if not file.comparisons:
            raise InputError(
                f"ranks on several machines compare their clocks when a recording begins; {file.name} could not; open "
                "explorer.record on every rank within 30 seconds",
                argument="path",
            )
    return tuple(widest(file.comparisons) for file in files)


def _on_one_clock(file: RankFile, numbers: Sequence[int], are_several: bool) -> list[Ends]:
    return [_ends(file, file.steps[number], are_several) for number in numbers]


def _ends(file: RankFile, step: StepLine, are_several: bool) -> Ends:
    def seconds(nanoseconds: Ints) -> Floats:
        own = nanoseconds.astype(np.float64) * 1e-9
        return np.where(nanoseconds < 0, np.nan, corrected(own, file.comparisons) if are_several else own)

    actions, messages = step.actions, step.messages
    return Ends(
        step.number,
        kind=actions["kind"],
        stage=actions["stage"],
        micro_batch=actions["micro_batch"],
        start=seconds(actions["start"]),
        end=seconds(actions["end"]),
        messages={name: messages[name] for name in ("kind", "stage", "micro_batch", "peer", "bytes")},
        posted=seconds(messages["posted"]),
        wanted=seconds(messages["wanted"]),
        got=seconds(messages["got"]),
    )


def _compute(step: Ends, rank: int) -> Events:
    return Events.of(
        step=step.number,
        rank=rank,
        stage=step.stage,
        micro_batch=step.micro_batch,
        kind=step.kind,
        slot=np.arange(len(step.kind)),
        stream=Stream.COMPUTE,
        start=step.start,
        end=np.maximum(step.end, step.start),
        wait=step.waits(),
        origin=Origin.MEASURED,
    )


def _memory(files: Sequence[RankFile], of_rank: Sequence[Sequence[Ends]], numbers: Sequence[int]) -> MemoryChanges:
    """Each step's memory: as it was in the one in which it was followed."""
    tables = []
    for file, steps in zip(files, of_rank, strict=True):
        followed = next((one for one in file.steps.values() if len(one.memory["delta"]) and one.error is None), None)
        for number, step in zip(numbers, steps, strict=True):
            if followed is None or not len(step.start) or followed.memory["action"].max() >= len(step.start):
                continue
            rows = followed.memory
            place = np.maximum(rows["action"], 0)
            time = np.where(rows["at_end"] == 1, step.end[place], step.start[place])
            tables.append(
                MemoryChanges.of(
                    step=number,
                    time=np.where(rows["action"] < 0, step.start[0], time),
                    rank=file.rank,
                    **{name: rows[name] for name in ("category", "stage", "micro_batch", "delta")},
                    origin=Origin.MEASURED if number == followed.number else Origin.MODELLED,
                )
            )
    return MemoryChanges.concatenate(*tables) if tables else MemoryChanges.of(step=())
