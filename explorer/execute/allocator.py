"""The bytes that stages hold on a device whose allocator counts them itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from explorer.core import Category
from explorer.execute.activations import Change


class Allocated:
    """Counts what each action leaves allocated or frees, by the allocator's own counter, as CUDA has one.

    It stands where Activations stands on a CPU. Between two actions nothing is allocated, so that the counter's change
    from the end of one to the end of the next belongs to the rank, stage and micro-batch of the next. A change
    upwards counts from the action's start, one downwards from its end; gradients are told of apart.

    Args:
        rank_of_stage: the rank of each stage.
        allocated: bytes that the device's allocator has given out now.
    """

    def __init__(self, rank_of_stage: Sequence[int], allocated: Callable[[], int]) -> None:
        self._rank_of_stage = rank_of_stage
        self._allocated = allocated
        self._last = 0
        self._changes: list[Change] = []

    def start(self) -> None:
        """A step begins."""
        self._last = self._allocated()

    def changes(self) -> list[Change]:
        """What has changed since this was last asked."""
        changes, self._changes = self._changes, []
        return changes

    def saving(self, stage: int, micro_batch: int) -> AbstractContextManager[Any]:
        """Nothing to watch: the allocator sees all."""
        return contextlib.nullcontext()

    def grew(self, size: int) -> None:
        """`size` bytes of the next change are gradients."""
        self._last += size

    def keep(self, stage: int, micro_batch: int, tensors: Sequence[Any]) -> None:
        """A forward is over."""
        self._count(Category.ACTIVATIONS, stage, micro_batch)

    def let_go(self, stage: int, micro_batch: int) -> None:
        """The stage's backward is over."""
        self._count(Category.ACTIVATIONS, stage, micro_batch)

    def keep_gradients(self, stage: int, micro_batch: int, tensors: Sequence[Any]) -> None:
        """I is over, and has left what W needs."""
        self._count(Category.ACTIVATIONS, stage, micro_batch)

    def let_go_gradients(self, stage: int, micro_batch: int) -> None:
        """W is over; what it freed is counted already."""

    def _count(self, category: Category, stage: int, micro_batch: int) -> None:
        now = self._allocated()
        delta, self._last = now - self._last, now
        if delta:
            self._changes.append(Change(delta < 0, category, self._rank_of_stage[stage], stage, micro_batch, delta))
