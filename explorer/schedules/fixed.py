"""One program as a schedule: an order edited by hand, or read from a file, that is there under a name."""

from __future__ import annotations

from explorer.core import Program
from explorer.errors import ScheduleError


class Fixed:
    """A program, given for the numbers that it has and refused for others.

    Args:
        program: to give.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.n_chunks = max(1, program.n_stages // program.n_ranks)
        self.needs = f"n_ranks = {program.n_ranks} and n_micro_batches = {program.n_micro_batches} alone"
        self.__doc__ = f"An order of its own, for {program.n_ranks} ranks and {program.n_micro_batches} micro-batches."

    def __call__(self, n_ranks: int, n_micro_batches: int, n_chunks: int) -> Program:
        """The program.

        Raises:
            ScheduleError: for other numbers, with those that it has.
        """
        program = self._program
        wanted = {"n_ranks": n_ranks, "n_micro_batches": n_micro_batches, "n_chunks": n_chunks}
        there = {"n_ranks": program.n_ranks, "n_micro_batches": program.n_micro_batches, "n_chunks": self.n_chunks}
        for argument, count in there.items():
            if wanted[argument] != count:
                raise ScheduleError(
                    f"this order is one program and exists for {argument} = {count} alone; got {wanted[argument]}; "
                    f"try {count}",
                    argument=argument,
                    legal=(count,),
                )
        return program
