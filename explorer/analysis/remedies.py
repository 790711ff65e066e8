"""What the step gains if a cause of idle time is removed: fix this straggler and gain so much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.analysis.cause import Cause
from explorer.analysis.durations import Durations, durations_of
from explorer.analysis.network import Role
from explorer.analysis.resweep import Resweep
from explorer.analysis.sentences import action_in_words
from explorer.analysis.timed import TimedStep, timed_steps, typical_step
from explorer.core import Costs, Trace
from explorer.core.trace import check_trace

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

_MOST_HICCUPS = 20  # that are named one by one
_HICCUP = 0.1  # of its median, from which on an action's own excess is named
_LEAST = 1e-9  # of the makespan: a smaller gain is none
_NOISE = 2e-3  # of a makespan that was measured: a smaller gain is none that another run would show


Promise = Literal["exact", "bound", "estimate"]


class Gain(NamedTuple):
    """What one remedy brings.

    Attributes:
        cause: that is removed; None: the schedule's own bubble.
        remedy: what is done, in words.
        makespan: seconds that the step then takes, or takes at least.
        promise: "exact": the step then takes that long. "bound": it cannot take less. "estimate": it takes that long
            if messages on shared links take as long as before.
        rank, stage, micro_batch: of what is at fault; −1 = no single one.
    """

    cause: Cause | None
    remedy: str
    makespan: float
    promise: Promise
    rank: int = -1
    stage: int = -1
    micro_batch: int = -1


def gains(trace: Trace) -> pd.DataFrame:
    """What the step gains if a cause of idle time is removed, one remedy a row.

    The step is gone through again with what the remedy changes, and all else as it was:

    - straggler: a rank that is slow by `idle_causes`'s measure takes as long as it should.
    - hiccup: an action that took 10 % longer than its like takes as long as they do; and all of them at once.
    - imbalance: a stage takes no longer than the mean of the others; and all stages take their mean.
    - latency, bandwidth: of all messages. queue: no message stands behind another and no rank stands at one.
    - memory: there is room for everything, and nothing waits but for what it needs.
    - host: everything starts once all is there.

    These promises are exact: simulating the changed costs gives that makespan. Two are bounds, for what no single
    change removes: order, where the actions of a rank may come in any order, and the schedule's own bubble, where
    nothing but the busiest rank's work remains; no step can gain more. Where messages share links, how long each takes
    depends on when the others are sent, which a remedy changes: then they are taken to take as long as before, and all
    but bandwidth, queue and the bounds is called an estimate.

    Args:
        trace: any; of several steps the one with the median makespan is taken.

    Returns:
        cause, remedy, rank, stage, micro_batch (−1 where there is no single one), gain in seconds, share of the
        makespan, makespan then, and promise: "exact", "bound" or "estimate". What brings nothing is left out and, of a
        step that was not simulated, what brings less than 0.2 % of it; bounds last, the largest gain first.

    Raises:
        InputError: if it is no Trace, or nothing ran in it.
        ProgramError: if its program is incomplete or cannot finish.

    Example:
        >>> import explorer as ex
        >>> program = ex.schedule("1f1b", n_ranks=4, n_micro_batches=8)
        >>> trace = ex.simulate(program, ex.Costs(time_factor=[1, 1, 1.5, 1]))
        >>> print(ex.gains(trace)[["remedy", "gain", "promise"]].to_string(index=False))
                                             remedy  gain promise
            rank 2 runs as fast as it should (1.5×)  10.5   exact
        no bubble: only the busiest rank's own work   7.5   bound
          ranks run their actions in the best order   1.5   bound
    """
    import pandas as pd

    trace = check_trace(trace)
    step = typical_step(trace)
    base = Resweep.of(step)
    before = base.makespan
    least = before * (_LEAST if trace.clock == "simulated" else _NOISE)
    shared = trace.costs is not None and trace.costs.links is not None and bool(step.transfers.parts[:, 1].any())
    every = _all(base, _durations(trace, step), trace.costs, shared)
    found = [gain for gain in every if before - gain.makespan > least]
    found.sort(key=lambda gain: (gain.promise == "bound", gain.makespan))
    rows = [
        {
            "cause": "bubble" if gain.cause is None else gain.cause.name.lower(),
            "remedy": gain.remedy,
            "rank": gain.rank,
            "stage": gain.stage,
            "micro_batch": gain.micro_batch,
            "gain": before - gain.makespan,
            "share": (before - gain.makespan) / before,
            "makespan": gain.makespan,
            "promise": gain.promise,
        }
        for gain in found
    ]
    columns = ["cause", "remedy", "rank", "stage", "micro_batch", "gain", "share", "makespan", "promise"]
    return pd.DataFrame(rows, columns=columns)


def _durations(trace: Trace, step: TimedStep) -> Durations:
    """What the step's durations consist of, known from all steps."""
    if len(trace.steps) == 1:
        return durations_of([step], trace.costs, trace.marks)[0]
    steps = list(timed_steps(trace))
    place = [one.number for one in steps].index(step.number)
    return durations_of(steps, trace.costs, trace.marks)[place]


def _all(base: Resweep, durations: Durations, costs: Costs | None, shared: bool) -> Iterator[Gain]:
    """Every remedy; `shared`: messages share links, so that what moves one of them changes what others take."""
    parts = base.step.transfers.parts
    if not shared:
        yield from _single(base, durations, costs)
        yield from _bytes(base, parts.sum(axis=1) - parts[:, 1])
        yield from _bounds(base)
        return
    for gain in _single(base, durations, costs):
        yield gain._replace(promise="exact" if gain.cause == Cause.QUEUE else "estimate")
    yield from _bytes(base, parts[:, 0])  # nor does anything then stand behind them
    yield from _bounds(base.with_moving(np.arange(len(parts)), parts[:, 0] + parts[:, 1]))


def _single(base: Resweep, durations: Durations, costs: Costs | None) -> Iterator[Gain]:
    yield from _stragglers(base, durations, costs)
    yield from _hiccups(base, durations)
    yield from _heavy_stages(base, durations)
    yield from _messages(base)


def _bytes(base: Resweep, left: Floats) -> Iterator[Gain]:
    """No bytes, where each message then takes the seconds that are `left`, (n_messages,)."""
    if (base.step.transfers.parts[:, 1] > 0).any():
        makespan = base.with_moving(np.arange(len(left)), left).makespan
        yield Gain(Cause.BANDWIDTH, "the bytes of messages take no time", makespan, "exact")


def _stragglers(base: Resweep, durations: Durations, costs: Costs | None) -> Iterator[Gain]:
    for rank in np.flatnonzero(durations.factor > 1.0).tolist():
        factor = durations.factor[rank]
        seconds = _by_costs(base, rank, factor, costs)
        if seconds is None:
            seconds = _by_share(base, durations, rank)
        as_it_should = (
            "without the fault that slows it down" if rank in durations.faults.slow else "as fast as it should"
        )
        remedy = f"rank {rank} runs {as_it_should} ({factor:.3g}×)"
        yield Gain(Cause.STRAGGLER, remedy, base.with_seconds(seconds).makespan, "exact", rank=rank)


def _by_costs(base: Resweep, rank: int, factor: float, costs: Costs | None) -> Floats | None:
    """(n_nodes,) seconds by costs in which the rank is not slow; None where the durations are not those of costs."""
    network = base.step.network
    if costs is None:
        return None
    computes = network.slot >= 0
    slot = network.slot[computes]
    by_costs = costs.slot_seconds(network.program)[slot]
    if not np.allclose(by_costs, base.seconds[computes], rtol=_LEAST, atol=0.0):
        return None
    factors = costs.rank_factors(network.program).copy()
    factors[rank] /= factor
    seconds = base.seconds.copy()
    seconds[computes] = replace(costs, time_factor=factors).slot_seconds(network.program)[slot]
    return seconds


def _by_share(base: Resweep, durations: Durations, rank: int) -> Floats:
    """(n_nodes,) seconds in which all that a rank runs is quicker, but for what single actions took besides."""
    network, factor = base.step.network, durations.factor[rank]
    usual, excess, late = _excess(base, durations)
    quicker = np.where(late, usual / factor + excess, base.seconds / factor)
    return np.where((network.rank == rank) & (network.slot >= 0), quicker, base.seconds)


def _hiccups(base: Resweep, durations: Durations) -> Iterator[Gain]:
    network = base.step.network
    usual, _, much = _excess(base, durations)
    late = np.flatnonzero(much)
    late = late[np.argsort(usual[late] - base.seconds[late], kind="stable")]
    for node in late[:_MOST_HICCUPS].tolist():
        seconds = base.seconds.copy()
        seconds[node] = usual[node]
        action = int(network.action[node])
        place = int(network.rank[node]), int(network.program.stage[action]), int(network.program.micro_batch[action])
        usually = "is not held up by a fault" if action in durations.faults.late else "takes its median"
        remedy = f"{action_in_words(network.program, action)} {usually}"
        yield Gain(Cause.HICCUP, remedy, base.with_seconds(seconds).makespan, "exact", *place)
    if len(late) > 1:
        seconds = base.seconds.copy()
        seconds[late] = usual[late]
        remedy = f"all {len(late)} slow actions take their medians"
        yield Gain(Cause.HICCUP, remedy, base.with_seconds(seconds).makespan, "exact")


def _excess(base: Resweep, durations: Durations) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """(n_nodes,) what the likes of each node take, what it takes besides, and whether that is much."""
    excess = durations.of_node[:, 0]
    usual = base.seconds - excess
    return usual, excess, (base.step.network.slot >= 0) & (excess > _HICCUP * usual) & (excess > 0)


def _heavy_stages(base: Resweep, durations: Durations) -> Iterator[Gain]:
    """Each stage that is heavier than the others' mean brought down to it, and all stages brought to one mean."""
    network = base.step.network
    classes, nominal = network.classes, durations.nominal
    computes = np.flatnonzero((classes.of_node >= 0) & np.isfinite(base.step.start))
    of = classes.of_node[computes]
    others = classes.of_others(nominal, network.program.n_ranks)[classes.rank, classes.signature]
    with np.errstate(invalid="ignore", divide="ignore"):
        lighter = np.where(nominal > others, others / nominal, 1.0)
    heavy = np.unique(classes.stage[lighter < 1.0 - _LEAST])
    for stage in heavy.tolist():
        scale = np.where(classes.stage == stage, lighter, 1.0)
        makespan = _scaled(base, computes, scale[of])
        rank = int(classes.rank[classes.stage == stage][0])
        remedy = f"stage {stage} takes no longer than the others' mean"
        yield Gain(Cause.IMBALANCE, remedy, makespan, "exact", rank=rank, stage=stage)
    if len(heavy):
        mean = _means(nominal, classes.signature)
        scale = np.where(np.isfinite(nominal) & (nominal > 0), mean / np.where(nominal > 0, nominal, 1.0), 1.0)
        yield Gain(Cause.IMBALANCE, "all stages take their mean", _scaled(base, computes, scale[of]), "exact")


def _means(nominal: Floats, signature: npt.NDArray[np.int32]) -> Floats:
    """(n_classes,) the mean of all classes of the same signature."""
    known = np.isfinite(nominal)
    total = np.bincount(signature, np.where(known, nominal, 0.0))
    return np.asarray((total / np.maximum(np.bincount(signature, known), 1))[signature])


def _scaled(base: Resweep, nodes: npt.NDArray[np.int64], scale: Floats) -> float:
    seconds = base.seconds.copy()
    seconds[nodes] *= scale
    return base.with_seconds(seconds).makespan


def _messages(base: Resweep) -> Iterator[Gain]:
    """What messages besides their bytes, limits and the host cost."""
    step = base.step
    parts = step.transfers.parts
    if (parts[:, 0] > 0).any():
        makespan = base.with_moving(np.arange(len(parts)), parts[:, 1] + parts[:, 2]).makespan
        yield Gain(Cause.LATENCY, "messages have no latency", makespan, "exact")
    if (parts[:, 2] > 0).any() or step.network.ends_message.any():
        yield Gain(Cause.QUEUE, "no message is in the way of another", base.unhindered(), "exact")
    if (step.network.edges.role == Role.LIMIT).any():
        yield Gain(Cause.MEMORY, "there is room for everything", base.without(Role.LIMIT).makespan, "exact")
    if base.delay.any():
        yield Gain(Cause.HOST, "everything starts once all is there", base.prompt().makespan, "exact")


def _bounds(base: Resweep) -> Iterator[Gain]:
    """What no change of durations brings: other orders on the ranks, and a step without any bubble."""
    network = base.step.network
    computes = network.slot >= 0
    rank, n_ranks = network.rank[computes], network.program.n_ranks
    busy = np.bincount(rank, base.seconds[computes], minlength=n_ranks)
    anyhow = base.without(Role.ORDER)
    times, tails = anyhow.times(), anyhow.tails()
    head, tail = np.full((2, n_ranks), np.inf)
    np.minimum.at(head, rank, times[0][computes])
    np.minimum.at(tail, rank, tails[computes])
    there = np.isfinite(head)
    least = max(float(times[1].max(initial=0.0)), float((head + busy + tail)[there].max(initial=0.0)))
    yield Gain(Cause.ORDER, "ranks run their actions in the best order", least, "bound")
    idlest = int(busy.argmax())
    remedy = "no bubble: only the busiest rank's own work"
    yield Gain(None, remedy, float(busy[idlest]), "bound", rank=idlest)
