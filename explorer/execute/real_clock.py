"""A step as the ranks' own clock had it: one machine, one monotonic clock for all its processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorer.core import Costs, Events, Graph, Kind, Origin, Program, Stream
from explorer.execute.events import Message
from explorer.execute.virtual_clock import Floats, LaidStep, Step
from explorer.simulate import lay_out

_RECEIVES = {Kind.SEND_F: Kind.RECV_F, Kind.SEND_B: Kind.RECV_B}
_FREE = Costs()


def lay_real_step(graph: Graph, links: Costs, step: Step) -> LaidStep:
    """Put a step, also an unfinished one, where it was measured to be; `links` is what a virtual clock would need."""
    done = ~np.isnan(step.begun)
    events = lay_out(graph, _FREE, step.begun - step.begin, step.ended - step.begin, step=step.number, measured=True)
    slot = graph.program.rank_offsets[events.rank] + events.slot
    start, end, wait = events.start + step.begin, events.end + step.begin, events.wait.copy()
    _separate(graph.program, step, start, end, wait)
    events = replace(events, start=start, end=end, wait=wait).take(done[slot])
    messages = _messages(graph, step)
    updates = _updates(step)
    finish = float(np.nanmax(step.ended)) if done.any() else step.begin
    over = max(finish, float(updates.end.max(initial=step.begin)))
    return LaidStep(Events.concatenate(events, messages, updates), step.begun, step.ended, step.begin, over)


def _separate(program: Program, step: Step, start: Floats, end: Floats, wait: Floats) -> None:
    """Put the actions of a slot, which a device that cannot overlap runs one after the other, where they were."""
    for slot, moments in step.moments.items():
        first = int(program.slot_offsets[slot])
        for index, (begun, ended) in enumerate(moments, first):
            if index > first:
                wait[index] = max(begun - end[index - 1], 0.0)
            start[index], end[index] = begun, ended


def _messages(graph: Graph, step: Step) -> Events:
    """A row a message at each end."""
    if not step.messages:
        return Events.of(step=())
    rank_offsets, slot_of = graph.program.rank_offsets, _slots(graph)
    rows = [_ends(message, slot_of) for message in step.messages]
    rank, stage, micro_batch, kind, slot, stream, start, end, wait, size, peer, origin = zip(
        *(row for pair in rows for row in pair), strict=True
    )
    return Events.of(
        step=step.number,
        rank=rank,
        stage=stage,
        micro_batch=micro_batch,
        kind=kind,
        slot=np.array(slot) - rank_offsets[np.array(rank)],
        stream=stream,
        start=start,
        end=end,
        wait=wait,
        bytes=size,
        peer=peer,
        origin=origin,
    )


def _slots(graph: Graph) -> dict[tuple[int, int, int], int]:
    """(is a backward, stage, micro-batch) → the slot that makes, or needs, what goes between stages."""
    program = graph.program
    columns = program.kind.tolist(), program.stage.tolist(), program.micro_batch.tolist(), program.slot_of_action
    return {(k != Kind.F, s, m): int(slot) for k, s, m, slot in zip(*columns, strict=True) if k != Kind.W}


def _ends(message: Message, slot_of: dict[tuple[int, int, int], int]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The send's row, and the receive's."""
    kind, stage, micro_batch, _, peer = message.action
    back = kind == Kind.SEND_B
    other = stage - 1 if back else stage + 1
    origin = Origin.MEASURED if message.seen else Origin.MODELLED
    send = (message.source, stage, micro_batch, kind, slot_of[back, stage, micro_batch], Stream.SEND)
    receive = (peer, other, micro_batch, _RECEIVES[kind], slot_of[back, other, micro_batch], Stream.RECEIVE)
    ready = message.left if math.isnan(message.ready) else message.ready
    begun = max(ready, min(message.wanted, message.arrived))
    return (
        (*send, ready, message.arrived, ready - message.left, message.bytes, peer, origin),
        (*receive, begun, message.arrived, max(ready - message.wanted, 0.0), message.bytes, message.source, origin),
    )


def _updates(step: Step) -> Events:
    """U of each stage."""
    if not step.updates:
        return Events.of(step=())
    rank, stage, seconds, begun = (np.array(column) for column in zip(*step.updates, strict=True))
    return Events.of(
        step=step.number,
        rank=rank,
        stage=stage,
        kind=Kind.U,
        start=begun,
        end=begun + seconds,
        origin=Origin.MEASURED,
    )


def latency_of(messages: Sequence[Message]) -> float:
    """The median seconds of messages whose arrival was seen, from when bytes could move; 0 where none was."""
    seconds = [
        message.arrived - message.ready for message in messages if message.seen and message.ready >= message.wanted
    ]
    return max(float(np.median(seconds)), 0.0) if seconds else 0.0


def seen(waited: float) -> bool:
    """Whether a receiver that waited so many seconds saw its message arrive: less is what asking takes."""
    return not math.isnan(waited) and waited > _ASKING


_ASKING = 20e-6
