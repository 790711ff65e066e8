"""The line of numbers: predicted, and beside them measured, each with what it is a share of."""

from __future__ import annotations

import html
from collections.abc import Sequence

from explorer.core import Trace

_MOST_RANKS = 8
_MS = 1e3


def numbers(predicted: Trace, measured: Trace | None, losses: Sequence[float] = (), parity: str = "") -> str:
    """HTML of the measures of a step.

    Args:
        predicted: the simulated trace.
        measured: the run's trace of at least one whole step, or None.
        losses: one a step.
        parity: a sentence, or "".
    """
    traces = [predicted] if measured is None else [predicted, measured]
    cells = [
        _cell("makespan", [f"{trace.makespan * _MS:.4g} ms" for trace in traces], "of a step"),
        _cell("bubble ratio", [f"{trace.bubble_ratio:.1%}" for trace in traces], "of ranks × makespan"),
        _cell("bubble overhead", [f"{trace.bubble_overhead:.1%}" for trace in traces], "of busy time"),
        _cell("idle per rank", [_idle(trace) for trace in traces], "ms of the makespan"),
        _cell("peak in flight", [_few(trace.peak_in_flight.tolist()) for trace in traces], _chunk_unit(predicted)),
        _cell("events", [f"{len(predicted.events):,}"], "a step"),
    ]
    if losses:
        cells.append(
            _cell(
                "loss",
                [" → ".join(f"{loss:.4g}" for loss in _ends(losses))],
                f"of {len(losses)} step{'s' if len(losses) > 1 else ''}",
            )
        )
    if parity:
        cells.append(_cell("same as one process", [parity], "worst relative difference"))
    return f'<div class="pipeline-numbers">{"".join(cells)}</div>'


def _cell(name: str, values: list[str], of: str) -> str:
    words = ["predicted", "measured"]
    shown = values if len(values) == 1 else [f"{v} {word}" for v, word in zip(values, words, strict=True)]
    lines = "<br>".join(f"<b>{html.escape(text)}</b>" for text in shown)
    return f'<div class="pipeline-number">{html.escape(name)}<br>{lines}<small>{html.escape(of)}</small></div>'


def _idle(trace: Trace) -> str:
    return _few([f"{idle * _MS:.3g}" for idle in trace.idle_per_rank.tolist()])


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


def _ends(losses: Sequence[float]) -> list[float]:
    """The losses, or the first two and the last two of many."""
    most = 4
    return list(losses) if len(losses) <= most else [*losses[:2], *losses[-2:]]
