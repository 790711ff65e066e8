"""The line of numbers: predicted, and beside them measured, each with what it is a share of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from explorer.analysis import peak_bytes
from explorer.core import Kind, Trace
from explorer.core.metrics import step_seconds
from explorer.figures.units import Unit, bytes_unit, in_digits, time_unit
from explorer.widgets.reference import Against

_MOST_RANKS = 8


class Number(NamedTuple):
    """A measure: its name, its values in words, and what they are shares of."""

    name: str
    values: list[str]
    of: str


def numbers(
    predicted: Trace,
    measured: Trace | None,
    losses: Sequence[float] = (),
    parity: str = "",
    *,
    against: Against | None = None,
) -> tuple[Number, ...]:
    """The measures of a step.

    Args:
        predicted: the simulated trace.
        measured: the run's trace of at least one whole step, or None.
        losses: one a step.
        parity: a sentence, or "".
        against: what measures are shown as a difference from, where there is no run.
    """
    traces = [predicted] if measured is None else [predicted, measured]
    unit = time_unit(predicted.makespan, "wall")  # the controls, too, are in seconds

    def both(name: str, of: str, say: Callable[[Trace], str]) -> Number:
        values = [say(trace) for trace in traces]
        if against is not None and measured is None:
            return _difference(Number(name, values, of), say(against.trace), against, predicted, unit)
        words = ("predicted", "measured")
        return Number(
            name, values if measured is None else [f"{v} {w}" for v, w in zip(values, words, strict=True)], of
        )

    shown = [
        both("makespan", "of a step", lambda trace: unit.show(trace.makespan)),
        both("bubble ratio", "of ranks × makespan", lambda trace: f"{trace.bubble_ratio:.1%}"),
        both("bubble overhead", "of busy time", lambda trace: f"{trace.bubble_overhead:.1%}"),
        both("idle per rank", f"{unit.name} of the makespan", lambda trace: _idle(trace, unit)),
        both("peak in flight", _chunk_unit(predicted), lambda trace: _few(trace.peak_in_flight.tolist())),
        *_peak_memory(traces, against),
        *_with_optimizer(predicted, unit),
        Number("events", [f"{len(predicted.events):,}"], "a step"),
    ]
    if losses:
        said = " → ".join(_ends([f"{loss:.4g}" for loss in losses]))
        shown.append(Number("loss", [said], f"of {len(losses)} step{'s' if len(losses) > 1 else ''}"))
    if parity:
        shown.append(Number("same as one process", [parity], "worst relative difference"))
    return tuple(shown)


def _difference(now: Number, before: str, against: Against, predicted: Trace, unit: Unit) -> Number:
    """`now` with what it was, where that was another."""
    (value,) = now.values
    if before == value:
        return now._replace(of=f"{now.of}, as pinned") if against.word == "pinned" else now
    share = ""
    if now.name == "makespan" and against.trace.makespan > 0:
        before = before.removesuffix(f" {unit.name}")
        share = f" ({predicted.makespan / against.trace.makespan - 1:+.1%})".replace("-", "−")
    return Number(now.name, [f"{before} → {value}{share}"], f"{now.of}; {against.word} → now")


def _peak_memory(traces: Sequence[Trace], against: Against | None) -> list[Number]:
    """The most bytes that each rank holds, where they are known."""
    if not all(len(trace.memory) for trace in traces):
        return []
    peaks = [peak_bytes(trace) for trace in traces]
    unit = bytes_unit(max(float(peak.max(initial=0)) for peak in peaks))
    texts = [_few([in_digits(held * unit.factor, 3) for held in peak.tolist()]) for peak in peaks]
    if len(texts) > 1:
        return [Number("peak memory", [f"{texts[0]} predicted", f"{texts[1]} measured"], f"{unit.name}, by rank")]
    now = Number("peak memory", texts, f"{unit.name}, by rank")
    if against is None or not len(against.trace.memory):
        return [now]
    before = _few([in_digits(held * unit.factor, 3) for held in peak_bytes(against.trace).tolist()])
    return [_difference(now, before, against, traces[0], unit)]


def _with_optimizer(predicted: Trace, unit: Unit) -> list[Number]:
    """How long a step is with what comes behind its makespan, where anything does."""
    if not (predicted.events.kind == Kind.U).any():
        return []
    return [Number("with optimizer", [unit.show(step_seconds(predicted.events))], "of a step, predicted")]


def _idle(trace: Trace, unit: Unit) -> str:
    return _few([in_digits(idle * unit.factor, 3) for idle in trace.idle_per_rank.tolist()])


def _few(values: Sequence[object]) -> str:
    """All values where they are few or all alike, else the first, the middle and the last with dots between."""
    texts = [str(value) for value in values]
    if len(set(texts)) == 1:
        return f"{texts[0]} each" if len(texts) > 1 else texts[0]
    if len(texts) > _MOST_RANKS:
        return f"{texts[0]} … {texts[len(texts) // 2]} … {texts[-1]}"
    return " ".join(texts)


def _chunk_unit(trace: Trace) -> str:
    chunks = trace.program.n_stages // trace.n_ranks
    return "micro-batches, by rank" if chunks == 1 else "micro-batches × stages, by rank"


def _ends(losses: Sequence[str]) -> list[str]:
    """The losses, or the first two and the last two of many with dots between."""
    most = 5
    return list(losses) if len(losses) <= most else [*losses[:2], "…", *losses[-2:]]
