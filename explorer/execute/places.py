"""Where each rank of a run in processes is: what it finished last, what comes next, and who is waited for."""

from __future__ import annotations

from typing import Any, NamedTuple

from explorer.core import Graph, Program, graph_of
from explorer.execute.events import SlotEnd
from explorer.execute.faults import Fault, Injected
from explorer.execute.reporter import WARM_UP
from explorer.execute.tasks import warm_up_of


class _Place(NamedTuple):
    step: int = WARM_UP
    n_slots: int = 0  # of the step that are done


class Places:
    """Follows the ranks by their reports.

    Attributes:
        faults: rank → the fault that ends it.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._at = dict.fromkeys(range(program.n_ranks), _Place())
        self.faults: dict[int, Fault] = {}
        self._begun: set[int] = set()

    def __len__(self) -> int:
        return len(self._at)

    def note(self, rank: int, what: str, step: int, value: Any) -> None:
        """Take one report."""
        self._begun.add(rank)
        if what == "begin":
            self._at[rank] = _Place(step)
        elif what == "rows":
            for fault in (row.fault for row in value if isinstance(row, Injected)):
                if fault.ends_run:
                    self.faults[rank] = fault
            n_slots = sum(isinstance(row, SlotEnd) for row in value)
            self._at[rank] = _Place(step, self._at[rank].n_slots + n_slots)

    def has_begun(self, rank: int) -> bool:
        """Whether anything has been heard of a rank."""
        return rank in self._begun

    def of(self, rank: int) -> str:
        """Where a rank was heard of last, in words."""
        step, n_done = self._at[rank]
        program, first, n_slots = self._slots(rank)
        moment = "while warming up" if step == WARM_UP else f"in step {step}"
        last = f", after {_actions(program, first + n_done - 1)}" if n_done else ""
        then = f", before {_actions(program, first + n_done)}" if n_done < n_slots else ""
        return f"{moment}{last}{then}"

    def waited_for(self) -> list[int]:
        """The ranks that have all they need for what comes next, so that the others wait for them."""
        earliest = min(place.step for place in self._at.values())
        behind = [rank for rank, place in self._at.items() if place.step == earliest]
        return [rank for rank in behind if self._has_all(rank)] or behind

    def _has_all(self, rank: int) -> bool:
        program, first, n_slots = self._slots(rank)
        n_done = self._at[rank].n_slots
        return n_done >= n_slots or all(map(self._is_done, _needed(graph_of(program), first + n_done)))

    def _is_done(self, slot: int) -> bool:
        """Whether this slot, of the earliest step that a rank is in, has run."""
        step = min(place.step for place in self._at.values())
        program = self._of_step(step)
        rank = int(program.rank_of_slot[slot])
        place = self._at[rank]
        return place.step > step or slot - int(program.rank_offsets[rank]) < place.n_slots

    def _slots(self, rank: int) -> tuple[Program, int, int]:
        """The program that a rank is in, the rank's first slot there, and how many it has."""
        program = self._of_step(self._at[rank].step)
        first, over = program.rank_offsets[rank : rank + 2].tolist()
        return program, first, over - first

    def _of_step(self, step: int) -> Program:
        return warm_up_of(self._program) if step == WARM_UP else self._program


def _needed(graph: Graph, slot: int) -> list[int]:
    """The slots that one waits for."""
    first, over = graph.edge_offsets[slot : slot + 2].tolist()
    needed: list[int] = graph.source_slot[first:over].tolist()
    return [one for one in needed if one != slot]


def _actions(program: Program, slot: int) -> str:
    first, over = program.slot_offsets[slot : slot + 2].tolist()
    return " with ".join(str(program.action(index)) for index in range(first, over))
