"""A trace drawn as text, one column a unit of time, for expected values that can be read."""

from __future__ import annotations

from explorer.core import Kind, Stream, Trace


def picture(trace: Trace) -> str:
    """One line a rank: kind and micro-batch where an action starts, `-` while it goes on, `.` where nothing runs.

    All starts and durations must be whole numbers and all micro-batches below 10.
    """
    width = round(trace.makespan)
    lanes = [[" ."] * width for _ in range(trace.n_ranks)]
    events = trace.events
    for i in range(len(events)):
        if events.stream[i] != Stream.COMPUTE:
            continue
        first, last = round(events.start[i]), round(events.end[i])
        lane = lanes[events.rank[i]]
        for column in range(first, last):
            assert lane[column] == " .", "two actions at once on one rank"
            lane[column] = f"{Kind(events.kind[i]).name}{events.micro_batch[i]}" if column == first else " -"
    return "\n".join("".join(lane) for lane in lanes)


def drawn(text: str) -> str:
    """An expected picture, written indented, each line between bars."""
    return "\n".join(line.strip()[1:-1] for line in text.strip().split("\n"))
