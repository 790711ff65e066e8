"""Why a rank is idle."""

from __future__ import annotations

from enum import IntEnum


class Cause(IntEnum):
    """Why a rank is idle, each as `idle_causes` defines it."""

    FILL = 0  # the pipeline's own bubble, before the rank's first backward
    DRAIN = 1  # the same, after its last forward
    UPSTREAM = 2  # the same, between the two
    ORDER = 3  # another of its actions was ready; the program's order puts it later
    IMBALANCE = 4  # a stage takes longer than the others
    STRAGGLER = 5  # a rank is slower than it is by its own measure
    HICCUP = 6  # an action took longer than its like
    MEMORY = 7  # no room between stages, or a wait that the program adds
    QUEUE = 8  # a message stood behind others
    LATENCY = 9  # a message was on its way
    BANDWIDTH = 10  # its bytes moved
    HOST = 11  # all was there and nothing ran: Python, launch, operating system
