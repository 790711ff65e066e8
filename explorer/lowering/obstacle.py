"""Why an action cannot stand where it was to be moved: the chain of actions that must lie between, in words."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from explorer.core import Graph, Kind, Program

# what a later action needs of an earlier one, by their kinds
_NEEDED = {
    (Kind.F, Kind.F): "what {} hands on",
    **dict.fromkeys([(Kind.F, Kind.B), (Kind.F, Kind.I), (Kind.F, Kind.R)], "the activations that {} keeps"),
    **dict.fromkeys([(Kind.R, Kind.B), (Kind.R, Kind.I)], "the activations that {} rebuilds"),
    **{(one, other): "the gradient that {} hands back" for one in (Kind.B, Kind.I) for other in (Kind.B, Kind.I)},
    (Kind.I, Kind.W): "the gradients that {} leaves for it",
}


class Obstacle(NamedTuple):
    """What stands against a move.

    Attributes:
        slot: of those that would be passed, the nearest that cannot be, counted over all ranks.
        sentence: why not.
    """

    slot: int
    sentence: str


class _Step(NamedTuple):
    """From a slot to one that must come before it.

    Attributes:
        earlier: slot, counted over all ranks.
        edge: row of the graph's dependencies; −1 where it is the order of their rank.
    """

    earlier: int
    edge: int


def find_obstacle(graph: Graph, moved: int, place: int) -> Obstacle | None:
    """The nearest slot that `moved` cannot pass on its way to `place`, and why; None if it can pass all.

    Slots are counted over all ranks. The order of the moved slot within its rank counts for nothing, all other
    orders and all dependencies do: what is found to need the other, if only through others, must stay behind it.
    """
    if place < moved:
        before = _before(graph, moved, moved)
        passed = [slot for slot in range(moved - 1, place - 1, -1) if slot in before]
        return Obstacle(passed[0], _told(graph, before, passed[0], moved)) if passed else None
    after = _after(graph, moved)
    passed = [slot for slot in range(moved + 1, place + 1) if slot in after][:1]
    return Obstacle(passed[0], _told(graph, _before(graph, passed[0], moved), moved, passed[0])) if passed else None


def _after(graph: Graph, moved: int) -> set[int]:
    """All that must come after `moved`, whatever its place on its rank, and itself."""
    reached = {moved}
    for slot in graph.order.tolist():
        if any(earlier in reached for earlier, _ in _steps(graph, slot, moved)):
            reached.add(slot)
    return reached


def _before(graph: Graph, last: int, moved: int) -> dict[int, tuple[int, int]]:
    """All that must come before `last`: slot → (the next towards `last` by fewest steps, edge of that step)."""
    towards: dict[int, tuple[int, int]] = {}
    queue = deque([last])
    while queue:
        here = queue.popleft()
        for earlier, edge in _steps(graph, here, moved):
            if earlier not in towards and earlier != last:
                towards[earlier] = here, edge
                queue.append(earlier)
    return towards


def _steps(graph: Graph, slot: int, moved: int) -> list[_Step]:
    first, beyond = graph.edge_offsets[slot], graph.edge_offsets[slot + 1]
    steps = [_Step(int(graph.source_slot[edge]), int(edge)) for edge in range(first, beyond)]
    rank = graph.program.rank_of_slot
    before = slot - 2 if slot - 1 == moved else slot - 1
    if slot != moved and before >= 0 and rank[before] == rank[slot]:
        steps.append(_Step(before, -1))
    return steps


def _told(graph: Graph, towards: dict[int, tuple[int, int]], first: int, last: int) -> str:
    """``1B3 needs the activations that 1F3 keeps``, or the way over other ranks."""
    steps, here = [], first
    while here != last:
        after, edge = towards[here]
        steps.append((here, after, edge))
        here = after
    steps.reverse()  # from the one that waits
    if len(steps) == 1 and steps[0][2] >= 0:
        return f"{graph.program.slot(last)} needs {_needed(graph, steps[0][2])}"
    return ", ".join(_links(graph.program, steps))


def _needed(graph: Graph, edge: int) -> str:
    program, dependencies = graph.program, graph.dependencies
    source, target = int(dependencies.source[edge]), int(dependencies.target[edge])
    kinds = Kind(int(program.kind[source])), Kind(int(program.kind[target]))
    return _NEEDED.get(kinds, "{} to come first").format(program.action(source))


def _links(program: Program, steps: list[tuple[int, int, int]]) -> list[str]:
    """One clause for each need, and one for each stretch of a rank's order between two of them."""
    links: list[str] = []
    at = 0
    while at < len(steps):
        earlier, after, edge = steps[at]
        at += 1
        if edge >= 0:
            subject = f"{program.slot(after)} " if not links else "which "
            links.append(f"{subject}needs {program.slot(earlier)}")
            continue
        while at < len(steps) and steps[at][2] < 0:
            earlier = steps[at][0]
            at += 1
        links.append(f"which stands behind {program.slot(earlier)} on rank {program.rank_of_slot[earlier]}")
    return links
