"""Tiny models and programs to run for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import explorer as ex

WIDTH = 8


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        yield


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(16, WIDTH), torch.randn(16, WIDTH)


@pytest.fixture
def make_layers() -> Callable[[int], list[nn.Module]]:
    return lambda n: [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(n)]


@pytest.fixture
def sgd() -> Callable[..., torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, lr=0.1)


@pytest.fixture
def program() -> ex.Program:
    return ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)


@pytest.fixture
def split_program() -> ex.Program:
    """Two ranks, backwards cut into I and W, weights later than inputs: as ZB-H1 does."""
    orders = [
        ["0F0", "0F1", "0I0", "0F2", "0I1", "0W0", "0F3", "0I2", "0W1", "0I3", "0W2", "0W3"],
        ["1F0", "1I0", "1F1", "1W0", "1I1", "1W1", "1F2", "1I2", "1F3", "1I3", "1W2", "1W3"],
    ]
    return ex.Program.from_orders("split", ex.Placement.looped(2), 4, orders)


class Failing(nn.Module):
    """Raises at its n-th forward; a copy counts on from where the original was."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.inner, self.at, self.calls = nn.Linear(WIDTH, WIDTH), at, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == self.at:
            raise KeyError("a fuse has blown")
        return self.inner(x)


@pytest.fixture
def failing() -> type[Failing]:
    return Failing


class Clock:
    """Seconds that pass only when somebody lets them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def __deepcopy__(self, memo: object) -> Clock:
        return self


class _Tick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, clock, forward, backward):
        clock.now += forward
        ctx.clock, ctx.backward = clock, backward
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.clock.now += ctx.backward
        return grad, None, None, None


class Timed(nn.Module):
    """A layer whose forward and backward take exactly so many seconds of a clock."""

    def __init__(self, clock: Clock, forward: float, backward: float) -> None:
        super().__init__()
        self.inner, self.clock, self.seconds = nn.Linear(WIDTH, WIDTH), clock, (forward, backward)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Tick.apply(self.inner(x), self.clock, *self.seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> Callable[[float, float], nn.Module]:
    return lambda forward, backward: Timed(clock, forward, backward)
