"""How much longer an operation takes while another process works on the next core: python -m tests.benchmarks.beside"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

SECONDS = 4.0  # of each measurement, loading torch apart


def beside(width: int, rows: int) -> float:
    """Median seconds of a layer's forward and backward with a twin at work, over those alone; bare torch, no pipeline.

    Args:
        width: of the layer.
        rows: of what it is given.
    """
    alone, *together = (seconds for n in (1, 2) for seconds in _of_processes(n, width, rows))
    return statistics.mean(together) / alone


def _of_processes(n: int, width: int, rows: int) -> list[float]:
    """The median seconds that each of `n` processes, which work at once, needed."""
    command = [sys.executable, "-m", "tests.benchmarks.beside", str(width), str(rows), str(time.time() + 10)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    return [float(process.communicate(timeout=60)[0]) for process in processes]


def _measure(width: int, rows: int, begin: float) -> float:
    """Median seconds from `begin`, on the clock of all processes, for a while."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    layer, values = nn.Sequential(nn.Linear(width, width), nn.Tanh()), torch.randn(rows, width, requires_grad=True)
    layer(values).sum().backward()
    time.sleep(max(begin - time.time(), 0.0))
    until, taken = time.time() + SECONDS, []
    while time.time() < until:
        at = time.perf_counter()
        layer(values).sum().backward()
        taken.append(time.perf_counter() - at)
    return statistics.median(taken)


if __name__ == "__main__":
    print(_measure(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
