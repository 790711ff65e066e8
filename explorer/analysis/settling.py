"""What a gap consists of, once no part of it is negative: a gap cannot hold less than nothing of a cause."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core import kernel, part

Floats = npt.NDArray[np.float64]

# columns of the parts; the first four may be made up for in another gap of the rank
STRUCTURE, IMBALANCE, LATENCY, BANDWIDTH, QUEUE, MEMORY, HOST, HICCUP, STRAGGLER = range(9)
N_PARTS = 9


@kernel
def settle(rank: npt.NDArray[np.int64], seconds: Floats, parts: Floats) -> None:
    """Turn `parts`, (n_gaps, 9), each row the sum of a gap's seconds, into parts of which none is negative.

    A hiccup, say, on the rank itself is a negative part of the gap that follows: it used up idle time that would have
    been there. So it lessens the other parts of that gap. Structure, imbalance, latency and bandwidth, which are
    reckoned against averages, are exchanged between the gaps of a rank, so that each rank's sum stays what it is.
    """
    first = 0
    while first < len(rank):
        behind = first
        owed = np.zeros(4)
        while behind < len(rank) and rank[behind] == rank[first]:
            _lessen(parts[behind], seconds[behind])
            _exchange(parts[behind], owed)
            behind += 1
        for i in range(behind - 1, first - 1, -1):
            _exchange(parts[i], owed)
        first = behind


@part
def _lessen(parts: Floats, seconds: float) -> None:
    """Let what is negative lessen the rest in proportion; the exchangeable four count as one."""
    averaged = parts[0] + parts[1] + parts[2] + parts[3]
    positive = max(averaged, 0.0)
    for column in range(4, len(parts)):
        positive += max(parts[column], 0.0)
    scale = seconds / positive if positive > 0.0 else 0.0
    for column in range(len(parts)):
        if (column < 4 and averaged <= 0.0) or (column >= 4 and parts[column] < 0.0):
            parts[column] = 0.0
        else:
            parts[column] *= scale


@part
def _exchange(parts: Floats, owed: Floats) -> None:
    """Add what is owed, take away what would be negative, and owe the difference to the next gap."""
    total, positive = 0.0, 0.0
    for column in range(4):
        total += parts[column]
        owed[column] += parts[column]
        positive += max(owed[column], 0.0)
    scale = total / positive if positive > 0.0 else 0.0
    for column in range(4):
        parts[column] = max(owed[column], 0.0) * scale
        owed[column] -= parts[column]
