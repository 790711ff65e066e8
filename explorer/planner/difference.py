"""How much of a prediction's error lies in durations, transfers, the order, and the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from explorer.analysis import aligned_step
from explorer.core import PER_STAGE_KINDS, Kind, Program, Trace
from explorer.errors import InputError
from explorer.planner.ingredients import Order, laid_again, order_of, taken_apart

if TYPE_CHECKING:
    import pandas as pd

_PARTS = ("durations", "transfers", "order", "host")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Makespans of a predicted and a measured step, and what lies between them; all in seconds.

    Attributes:
        predicted: makespan of the predicted step.
        measured: makespan of the measured step.
        durations: what actions that took other times than predicted make of it.
        transfers: what messages that were on their way for other times make of it, latency and bytes together.
        order: what another order of the same actions makes of it.
        host: what ranks that idled, or were held up by a message, though all they waited for was there make of it.
        clock: what the measured times were read from, as in Trace.
        left_out: of which kinds the two have not the same actions, gradient reduction or update; neither's count.
    """

    predicted: float
    measured: float
    durations: float
    transfers: float
    order: float
    host: float
    clock: str
    left_out: tuple[Kind, ...] = ()

    @property
    def total(self) -> float:
        """Measured − predicted, in seconds: the sum of the four parts."""
        return self.measured - self.predicted

    @property
    def ratio(self) -> float:
        """Predicted ÷ measured: 1 is a perfect prediction, less an optimistic one."""
        return self.predicted / self.measured if self.measured else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """A row for each part: its name, seconds, and seconds as a share of the predicted makespan."""
        import pandas as pd

        seconds = np.array([getattr(self, name) for name in _PARTS])
        share = seconds / self.predicted if self.predicted else np.full(len(seconds), np.nan)
        return pd.DataFrame({"part": _PARTS, "seconds": seconds, "share": share})


def explain_difference(predicted: Trace, measured: Trace, *, step: int | None = None) -> Difference:
    """Why a measured step took longer, or less long, than predicted.

    The predicted step is laid out anew four times, each time with one more of its ingredients taken from the measured
    step: first the durations of its actions, then the transfers of its messages, then the order, then the gaps before
    its actions. What the makespan gains at each is that part of the difference, so that the parts always sum to the
    whole. What two ingredients do only together is counted where the later one is replaced.

    Gradient reductions that only one has, as a recording of torch's own run has them, are left out, and `left_out` says
    so; optimizer updates likewise.

    Args:
        predicted: what was to happen.
        measured: what happened: the same actions on the same ranks, in this order or another.
        step: number of the step in both; None for that of median makespan in each, the first left out.

    Raises:
        InputError: if one is no Trace, has no such step, or its step is not whole; or if their actions differ.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
        >>> happened = ex.simulate(program, ex.Costs(backward=2.5, latency=0.25))
        >>> found = ex.explain_difference(ex.simulate(program), happened)
        >>> found.total, found.durations, found.transfers  # (M + P − 1) · 0.5, then 16 times the latency
        (9.5, 5.5, 4.0)
    """
    steps = [aligned_step(trace, step=step) for trace in (predicted, measured)]
    left_out = _only_in_one(*(one.program for one in steps))
    planned, real = (order_of(one.program, without=left_out) for one in steps)
    _check_alike(planned, real)
    expected, happened = taken_apart(planned, steps[0]), taken_apart(real, steps[1])
    parts, makespans = expected, [laid_again(planned, expected)]
    for order, name in ((planned, "durations"), (planned, "transfers"), (real, ""), (real, "gaps")):
        parts = parts._replace(**{name: getattr(happened, name)}) if name else parts
        makespans.append(laid_again(order, parts))
    gained = dict(zip(_PARTS, np.diff(makespans).tolist(), strict=True))
    predicted_makespan, *_, measured_makespan = makespans
    return Difference(
        predicted=predicted_makespan, measured=measured_makespan, clock=measured.clock, left_out=left_out, **gained
    )


def _only_in_one(one: Program, other: Program) -> tuple[Kind, ...]:
    """The kinds that run once a stage, and not for the same stages on the same ranks in both."""

    def places(program: Program, kind: Kind) -> list[tuple[int, int]]:
        rows = program.kind == kind
        return sorted(zip(program.rank_of_action[rows].tolist(), program.stage[rows].tolist(), strict=True))

    return tuple(kind for kind in PER_STAGE_KINDS if places(one, kind) != places(other, kind))


def _check_alike(planned: Order, real: Order) -> None:
    """Refuse programs that differ in more than their order.

    Raises:
        InputError: saying in what.
    """
    one, other = planned.graph.program, real.graph.program
    shapes = [(p.n_ranks, p.n_stages, p.n_micro_batches, p.n_segments) for p in (one, other)]
    if shapes[0] != shapes[1]:
        names = ("ranks", "stages", "micro-batches", "segments")
        told = [", ".join(f"{n} {name}" for n, name in zip(shape, names, strict=True)) for shape in shapes]
        raise _unlike(f"{told[0]} and {told[1]}")
    if not _same(planned, real, "kind", "stage", "micro_batch", "segment"):
        raise _unlike(_odd_one(one, other))
    if not _same(planned, real, "rank_of_action"):
        raise _unlike("the same actions on other ranks")
    if not np.array_equal(_companions(planned), _companions(real)):
        raise _unlike("actions that only one of them begins together")


def _same(one: Order, other: Order, *names: str) -> bool:
    """Whether both programs have the same values in these columns, by identity."""
    return all(np.array_equal(_in_order(one, name), _in_order(other, name)) for name in names)


def _in_order(order: Order, name: str) -> npt.NDArray[np.int32]:
    """(n_actions,) a column of the program, by identity."""
    return np.asarray(getattr(order.graph.program, name)[np.argsort(order.identity)])


def _companions(order: Order) -> npt.NDArray[np.int64]:
    """(n_actions,) which slot each action is in, both by identity."""
    return np.asarray(order.slot_identity[order.graph.program.slot_of_action[np.argsort(order.identity)]])


def _odd_one(one: Program, other: Program) -> str:
    """An action that only one of them has, in words."""
    there, here = ({str(p.action(index)) for index in range(p.n_actions)} for p in (one, other))
    only = min(there ^ here, key=lambda text: (len(text), text), default="an action more often")
    return f"{only}, which only the {'first' if only in there else 'second'} has"


def _unlike(came: str) -> InputError:
    return InputError(
        f"a difference is explained between traces of the same actions on the same ranks; got {came}; "
        "explorer.compare draws them, and their makespans can be compared",
        argument="measured",
    )
