"""Two processes that run steps of torch's own 1F1B as it is, and of ours with everything recorded, turn by turn."""

from __future__ import annotations

import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import explorer as ex
from explorer.execute._torch_ranks import Courier, Ranks, barrier
from explorer.execute.fit import Sample
from explorer.execute.rank_session import RankBench, RankSession
from explorer.execute.reporter import Reporter
from explorer.execute.reports import from_report
from explorer.execute.settings import keep_memory
from explorer.execute.stages import CutModel

WIDTH, ROWS, N_MICRO_BATCHES = 640, 160, 8


def squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss."""
    return (outputs - targets).square().mean()


def layers() -> nn.Sequential:
    """A stage whose step takes some 200 ms on one core."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)))


def alternate(n_pairs: int) -> list[tuple[float, float]]:
    """Seconds of bare and of recorded steps, by turns, of the slower of two ranks."""
    context = get_context("spawn")
    listener = torch.distributed.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    ends = []
    for rank in range(2):
        ours, theirs = context.Pipe()
        context.Process(target=_rank, args=(rank, listener.port, theirs, n_pairs), daemon=True).start()
        theirs.close()
        ends.append(ours)
    times: dict[int, list[tuple[float, float]]] = {}
    while len(times) < 2:
        for end in wait(ends):
            what, value = _heard(end)
            if what == "times":
                times[ends.index(end)] = value  # type: ignore[arg-type]
    return [(max(a[0], b[0]), max(a[1], b[1])) for a, b in zip(times[0], times[1], strict=True)]


def _heard(end: Any) -> tuple[str, Any]:
    what, _, value = from_report(end.recv_bytes())
    return what, value


def _rank(rank: int, port: int, pipe: Connection, n_pairs: int) -> None:
    torch.set_num_threads(1)
    keep_memory()  # as in every worker, and for both
    torch.manual_seed(rank)
    ranks = Ranks(rank, None)
    ranks._store = torch.distributed.TCPStore("127.0.0.1", port, None, False)
    ranks.join(1, 2, port, 60.0)
    reporter = Reporter(pipe)
    module = layers()  # one for both: where its weights lie in memory makes a difference of some percent
    bare, recorded = _bare(rank, module), _recorded(rank, module, reporter)
    times = []
    with reporter.tended():  # as around all steps of a run
        for turn in range(n_pairs + 2):
            if turn % 2:
                without, with_ = _seconds(bare), _seconds(lambda turn=turn: recorded(turn))
            else:
                with_, without = _seconds(lambda turn=turn: recorded(turn)), _seconds(bare)
            if turn >= 2:  # the first pay for pages and caches, ours for watching memory too
                times.append((without, with_))
    reporter.tell("times", times)
    barrier()


def _seconds(step: Any) -> float:
    barrier()
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def _bare(rank: int, module: nn.Sequential) -> Any:
    taken, given = torch.empty(ROWS, WIDTH, requires_grad=bool(rank)), torch.empty(ROWS, WIDTH, requires_grad=True)
    stage = PipelineStage(module, rank, 2, torch.device("cpu"), input_args=(taken,), output_args=(given,))
    schedule = Schedule1F1B(stage, N_MICRO_BATCHES, loss_fn=squared)
    whole = torch.randn(2, ROWS * N_MICRO_BATCHES, WIDTH)

    def step() -> None:
        module.zero_grad()
        if rank:
            schedule.step(target=whole[1])
        else:
            schedule.step(whole[0])

    return step


def _recorded(rank: int, module: nn.Sequential, reporter: Reporter) -> Any:
    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=N_MICRO_BATCHES)
    stages: list[nn.Module] = [nn.Sequential(), nn.Sequential()]
    stages[rank] = module
    named: list[dict[str, Any]] = [dict(stage.named_parameters()) for stage in stages]
    like = torch.empty(ROWS, WIDTH, requires_grad=True)
    samples = [Sample((torch.empty(ROWS, WIDTH),), (like,)), Sample((like,), (like,))]
    model = CutModel(nn.ModuleList([stages[rank]]), stages, named)
    bench = RankBench(model, samples, squared, time.perf_counter, None)
    courier = Courier(time.perf_counter, reporter.waits, reporter.parcel)
    session = RankSession(rank, program, bench, reporter, courier)
    inputs = [() if rank else (torch.randn(ROWS, WIDTH),) for _ in range(N_MICRO_BATCHES)]
    targets = [torch.randn(ROWS, WIDTH) for _ in range(N_MICRO_BATCHES)] if rank else None

    def step(number: int) -> None:
        with courier.installed():
            reporter.begin(number)
            session.step(number, inputs, targets)
            reporter.end(0.0)

    return step


if __name__ == "__main__":
    sys.stdout.write(f"{alternate(int(sys.argv[1]))}\n")
