"""Events as the Trace Event Format has them, which ui.perfetto.dev and chrome://tracing open.

One process a rank; in it a thread for what its device does and others for what it sends and receives, as many as go
on at once; arrows from an action to what waits for its result on another rank; a counter of the memory it holds.
Times are microseconds.

Source: Trace Event Format, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.core import Category, Events, Kind, MemoryChanges, Origin, Stream, Trace, kernel
from explorer.core.action import among

Indices = npt.NDArray[np.int64]

_BLOCK = 50_000  # rows that become text at once
_MOST_ARROWS = 100_000  # more would only cover each other
_STREAMS = ("compute", "send", "receive")
_LANES = 1000  # numbers of threads set apart for each stream


def chrome_lines(trace: Trace) -> Iterator[str]:
    """The events of the list "traceEvents", in blocks of lines parted by commas; the first block is not empty."""
    lane = _lanes(trace.events)
    yield ",\n".join(_titles(trace, lane))
    for first in range(0, len(trace.events), _BLOCK):
        yield ",\n".join(_slices(trace.events.take(slice(first, first + _BLOCK)), lane[first : first + _BLOCK]))
    yield from _blocks(_arrows(trace, lane))
    yield from _blocks(_counters(trace.memory))


def _blocks(lines: list[str]) -> Iterator[str]:
    for first in range(0, len(lines), _BLOCK):
        yield ",\n".join(lines[first : first + _BLOCK])


def _titles(trace: Trace, lane: Indices) -> Iterator[str]:
    for rank in range(trace.n_ranks):
        yield _titled("process_name", rank, 0, name=f"rank {rank}")
        yield _titled("process_sort_index", rank, 0, sort_index=rank)
    used = np.unique(np.stack([trace.events.rank, lane]), axis=1).T.tolist() if len(lane) else []
    for rank, thread in used:
        yield _titled("thread_name", rank, thread, name=_STREAMS[thread // _LANES])
        yield _titled("thread_sort_index", rank, thread, sort_index=thread)


def _titled(what: str, process: int, thread: int, **arguments: Any) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments})


def _slices(events: Events, lane: Indices) -> list[str]:
    kinds, origins = [kind.name for kind in Kind], [origin.name.lower() for origin in Origin]
    columns = (
        *(events.stage, events.kind, events.micro_batch, events.segment, events.rank, lane),
        *(events.start * 1e6, (events.end - events.start) * 1e6, events.wait * 1e6),
        *(events.step, events.bytes, events.peer, events.origin),
    )
    return [
        f'{{"ph":"X","name":"{stage}{kinds[kind]}{"" if micro_batch < 0 else micro_batch}'
        f'{f".{segment}" if segment else ""}","cat":"{kinds[kind]}","pid":{rank},"tid":{thread},"ts":{start:.4f},'
        f'"dur":{seconds:.4f},"args":{{"step":{step},"stage":{stage},"micro_batch":{micro_batch},"wait_us":{wait:.4f},'
        f'"bytes":{size},"peer":{peer},"origin":"{origins[origin]}"}}}}'
        for stage, kind, micro_batch, segment, rank, thread, start, seconds, wait, step, size, peer, origin in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _lanes(events: Events) -> Indices:
    """(n_events,) the thread of each: of those that overlap in time, each gets its own."""
    thread = events.stream.astype(np.int64) * _LANES
    order = np.lexsort((events.start, events.stream, events.rank))
    group = (events.rank.astype(np.int64) * len(Stream) + events.stream)[order]
    thread[order] += _colour(group, events.start[order], events.end[order])
    return thread


@kernel
def _colour(group: Indices, start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> Indices:
    """For each, in order of group and start, the lowest number that none which still goes on has."""
    until = np.full(1000, -np.inf)
    lane = np.zeros(len(group), np.int64)
    for i in range(len(group)):
        if i > 0 and group[i] != group[i - 1]:
            until[:] = -np.inf
        k = 0
        while k < len(until) - 1 and until[k] > start[i]:
            k += 1
        until[k] = end[i]
        lane[i] = k
    return lane


def _arrows(trace: Trace, lane: Indices) -> list[str]:
    """From F to the next stage's F, and from B or I to that of the stage before, where they are on other ranks."""
    events = trace.events
    compute = events.stream == Stream.COMPUTE
    forward = np.flatnonzero(compute & (events.kind == Kind.F))
    backward = np.flatnonzero(compute & among(events.kind, Kind.B, Kind.I))
    pairs = np.concatenate([_neighbours(events, forward, 1), _neighbours(events, backward, -1)])
    pairs = pairs[events.rank[pairs[:, 0]] != events.rank[pairs[:, 1]]][:_MOST_ARROWS]
    ends = [np.stack([events.rank[row], lane[row]], axis=1).tolist() for row in pairs.T]
    times = [(events.start[row] * 1e6).tolist() for row in pairs.T]
    return [
        f'{{"ph":"{phase}","bp":"e","id":{number},"name":"message","cat":"message","pid":{rank},"tid":{thread},'
        f'"ts":{time:.4f}}}'
        for phase, places, starts in zip("sf", ends, times, strict=True)
        for number, ((rank, thread), time) in enumerate(zip(places, starts, strict=True))
    ]


def _neighbours(events: Events, rows: Indices, offset: int) -> Indices:
    """(n, 2) the pairs of `rows` in which the second is `offset` stages behind, of the same step and micro-batch."""

    def key(stage: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        columns = (events.step[rows], stage, events.micro_batch[rows], events.segment[rows])
        sizes = [int(column.max(initial=0)) + 2 for column in (events.step, events.stage, events.micro_batch)]
        size = int(events.segment.max(initial=0)) + 1
        step, stages, micro_batch, segment = (column.astype(np.int64) for column in columns)
        return np.asarray(((step * (sizes[1] + 1) + stages + 1) * sizes[2] + micro_batch + 1) * size + segment)

    here, there = key(events.stage[rows]), key(events.stage[rows] + np.int32(offset))
    order = np.argsort(here, kind="stable")
    place = np.clip(np.searchsorted(here[order], there), 0, max(len(rows) - 1, 0))
    found = here[order][place] == there if len(rows) else np.zeros(0, np.bool_)
    return np.stack([rows[found], rows[order][place][found]], axis=1)


def _counters(memory: MemoryChanges) -> list[str]:
    """What each rank holds after each change, by category; once for all changes at one instant."""
    names = [category.name.lower() for category in Category]
    lines = []
    for rank in np.unique(memory.rank).tolist():
        own = memory.take(memory.rank == rank)
        own = own.take(np.argsort(own.time, kind="stable"))
        used = np.unique(own.category).tolist()
        held = np.stack([np.cumsum(np.where(own.category == one, own.delta, 0)) for one in used], axis=1)
        last = np.append(own.time[1:] != own.time[:-1], True)
        for time, amounts in zip((own.time[last] * 1e6).tolist(), held[last].tolist(), strict=True):
            values = ",".join(f'"{names[one]}":{amount}' for one, amount in zip(used, amounts, strict=True))
            lines.append(
                f'{{"ph":"C","name":"memory (bytes)","pid":{rank},"tid":0,"ts":{time:.4f},"args":{{{values}}}}}'
            )
    return lines
