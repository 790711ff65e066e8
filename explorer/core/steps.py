"""The loops over steps and what they wait for: which belong together, and in which order they can be done."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.core.kernels import kernel

Indices = npt.NDArray[np.int64]


@kernel
def components(n_slots: int, left: Indices, right: Indices) -> Indices:
    """Number, from 0, of the connected component each pair of slots is in."""
    parent = np.arange(n_slots)
    for i in range(len(left)):
        a, b = left[i], right[i]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    number = np.full(n_slots, -1, np.int64)
    found = np.empty(len(left), np.int64)
    n = 0
    for i in range(len(left)):
        a = left[i]
        while parent[a] != a:
            a = parent[a]
        if number[a] < 0:
            number[a] = n
            n += 1
        found[i] = number[a]
    return found


@kernel
def sorted_edges(source: Indices, target: Indices, n_steps: int) -> tuple[Indices, Indices, Indices]:
    """The edges by target, where each target's begin, and the steps that can be done, in order."""
    offsets, leaving = np.zeros(n_steps + 1, np.int64), np.zeros(n_steps + 1, np.int64)
    for i in range(len(source)):
        offsets[target[i] + 1] += 1
        leaving[source[i] + 1] += 1
    missing = offsets[1:].copy()
    for k in range(n_steps):
        offsets[k + 1] += offsets[k]
        leaving[k + 1] += leaving[k]
    rows, after = np.empty(len(source), np.int64), np.empty(len(source), np.int64)
    place, out = offsets[:-1].copy(), leaving[:-1].copy()
    for i in range(len(source)):
        rows[place[target[i]]] = i
        place[target[i]] += 1
        after[out[source[i]]] = target[i]
        out[source[i]] += 1
    order = np.empty(n_steps, np.int64)
    n_done = 0
    for k in range(n_steps):
        if missing[k] == 0:
            order[n_done] = k
            n_done += 1
    reached = 0
    while reached < n_done:
        step = order[reached]
        reached += 1
        for i in range(leaving[step], leaving[step + 1]):
            missing[after[i]] -= 1
            if missing[after[i]] == 0:
                order[n_done] = after[i]
                n_done += 1
    return rows, offsets, order[:n_done]
