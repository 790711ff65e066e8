"""Ranks in processes: how soon they start, what recording takes, and whether predictions come true.

pytest -m benchmark tests/benchmarks/test_processes.py -s, on a quiet machine with two cores at least.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import explorer as ex
from explorer.core import Kind, Stream, graph_of
from explorer.execute.keeper import prepare
from explorer.execute.typical import lags
from explorer.simulate import slot_times
from tests.benchmarks.bare import alternate
from tests.benchmarks.beside import beside

Table = Callable[[str, Mapping[str, float]], None]

SEVEN = [
    ("gpipe", 8),
    ("1f1b", 8),
    ("interleaved_1f1b", 8),
    ("looped_bfs", 8),
    ("zb_h1", 8),
    ("zb_v", 8),
    ("dualpipev", 8),
]
WIDTH, ROWS = 1024, 256  # an operation of a layer takes 10 ms or more on one core
N_STEPS = 8


@pytest.mark.benchmark
def test_a_warm_rerun_with_other_numbers_starts_at_once(table: Table) -> None:
    prepare()
    seconds = []
    for name, n_ranks, n_micro_batches in [("1f1b", 4, 8), ("gpipe", 4, 4), ("zb_h1", 4, 12), ("1f1b", 3, 6)] * 2:
        program = ex.schedule(name, n_ranks=n_ranks, n_micro_batches=n_micro_batches)
        ready = ex.ready_model("gpt", n_stages=program.n_stages, n_micro_batches=n_micro_batches)
        started = ex.execute(
            program, ready.layers, ready.batch, loss=ready.loss, optimizer=ready.optimizer, backend="processes"
        ).started
        assert started is not None
        seconds.append(started.seconds)
        table(
            f"{name} {n_ranks} × {n_micro_batches}: to the first event", {"s": started.seconds, "new": started.n_forked}
        )
    assert max(seconds[1:]) < 1


@pytest.mark.benchmark
def test_recording_beside_bare_torch_by_turns(table: Table) -> None:
    pairs = alternate(180)  # sixty scatter by 1.5 %
    bare, recorded = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(with_ / without for without, with_ in pairs)
    table("a step of torch's own 1F1B", {"ms": 1e3 * bare})
    table("the same recorded", {"ms": 1e3 * recorded, "median ratio": ratio})
    assert bare >= 0.1
    assert ratio <= 1.02


@pytest.fixture(scope="module")
def twin() -> float:
    """How many times as long an operation takes beside another process as alone."""
    return beside(WIDTH, ROWS)


@pytest.mark.benchmark
@pytest.mark.parametrize(("name", "n_micro_batches"), SEVEN)
def test_prediction_beside_reality(name: str, n_micro_batches: int, twin: float, table: Table) -> None:
    program = ex.schedule(name, n_ranks=2, n_micro_batches=n_micro_batches)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(program.n_stages)]
    batch = torch.randn(2, ROWS * n_micro_batches, WIDTH).unbind()
    given = {"loss": nn.functional.mse_loss, "n_steps": N_STEPS}
    kernel = ex.execute(program, layers, batch, **given)
    run = ex.execute(program, layers, batch, backend="processes", **given)
    assert run.parity
    real = np.array([run.trace.step(step).makespan for step in range(1, N_STEPS)])
    own = np.array([_laid_out(run, step) for step in range(1, N_STEPS)])
    table(
        name,
        {
            "real ms": 1e3 * float(np.median(real)),
            "spread %": 100 * float(np.ptp(real) / np.median(real)),
            "own durations / real": float(np.median(own)),
            "predicted / real": run.predicted.step(0).makespan / float(np.median(real)),
            "in-kernel / real": kernel.predicted.step(0).makespan / float(np.median(real)),
            "and host / real": _in_kernel(kernel, run).makespan / float(np.median(real)),
            "and a twin / real": _in_kernel(kernel, run, twin).makespan / float(np.median(real)),
            "a twin": twin,
            "forward ms": 1e3 * float(np.median(_seconds(run, Kind.F))),
            "in the kernel": 1e3 * float(np.median(_seconds(kernel, Kind.F))),
            "message µs": 1e6 * float(np.mean(run.predicted.costs.latency)),
            "between actions µs": 1e6 * run.predicted.costs.fixed,
        },
    )
    assert float(np.median(own)) == pytest.approx(1, abs=0.03)


def _laid_out(run: ex.Run, step: int) -> float:
    """The makespan of a step's own durations over the real one, with its mean times of host and message between two.

    A step is their sum, of which medians say too little: now and then one takes ten times as long.
    """
    program, compute = run.trace.program, _compute(run, step)
    # a CPU runs what is begun together one after the other, and the first one's message leaves in between
    one_by_one = np.arange(program.n_actions + 1)
    graph = graph_of(replace(program, slot_offsets=one_by_one, rank_offsets=program.slot_offsets[program.rank_offsets]))
    order = np.lexsort((compute.start, compute.rank))
    start, end = compute.start[order], compute.end[order]
    late = lags(graph, start, end)
    host = late.host.mean()
    links = ex.Costs(latency=max(late.message.mean() - host, 0.0))
    laid_start, laid_end = slot_times(graph, end - start + host, links.edge_seconds(graph))
    return float(laid_end.max() - laid_start.min() - host) / (end.max() - start.min())  # no host's behind the last


def _compute(run: ex.Run, step: int) -> ex.Events:
    events = run.trace.step(step).events
    return events.take((events.stream == Stream.COMPUTE) & (events.kind != Kind.U))


def _seconds(run: ex.Run, kind: Kind) -> np.ndarray:
    parts = [_compute(run, step) for step in range(1, N_STEPS)]
    return np.concatenate([(one.end - one.start)[one.kind == kind] for one in parts])


def _in_kernel(kernel: ex.Run, run: ex.Run, twin: float = 1.0) -> ex.Trace:
    """The operations as the kernel measured them, messages and host as the processes did, beside a twin or not."""
    links = run.predicted.costs
    costs = replace(kernel.predicted.costs, latency=links.latency, fixed=links.fixed, time_factor=twin)
    return ex.simulate(kernel.trace.program, costs)
