"""The bytes that stages hold for their backwards, seen as autograd saves them.

Transients inside an operation are not seen: what a kernel allocates and frees before it returns is in no number here.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from explorer.core import Category
from explorer.errors import RunError


class Change(NamedTuple):
    """Bytes taken or given back, at the start or at the end of the slot that is running."""

    at_end: bool
    category: Category
    rank: int
    stage: int
    micro_batch: int
    delta: int


class _Held:
    """A storage that somebody on a rank holds on to."""

    __slots__ = ("bytes", "holders", "micro_batch", "stage")

    def __init__(self, stage: int, micro_batch: int, size: int) -> None:
        self.stage, self.micro_batch, self.bytes, self.holders = stage, micro_batch, size, 0


class Activations:
    """Counts each storage once on each virtual rank, for as long as something there holds it.

    Holders are the tensors autograd saved (until they die, by weak reference) and, as long as torch's stage keeps
    them, the stage's input and output. Two neighbouring ranks hold a message each, as they would as processes.
    Parameters and buffers are left out.

    Args:
        rank_of_stage: the rank of each stage.
        owned: storages, by address, that are parameters or buffers.
    """

    def __init__(self, rank_of_stage: Sequence[int], owned: set[int]) -> None:
        self._rank_of_stage = rank_of_stage
        self._owned = owned
        self._live: dict[tuple[int, int], _Held] = {}
        self._references: dict[int, weakref.ref[torch.Tensor]] = {}
        self._kept: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._between: dict[tuple[int, int], int] = {}
        self._changes: list[Change] = []

    def start(self) -> None:
        """A step begins; what is held is known."""

    def grew(self, size: int) -> None:
        """`size` bytes of gradients are there; autograd saves none of them."""

    def changes(self) -> list[Change]:
        """What has changed since this was last asked."""
        changes, self._changes = self._changes, []
        return changes

    @contextlib.contextmanager
    def saving(self, stage: int, micro_batch: int) -> Iterator[None]:
        """Within it, what autograd saves is counted for this stage and micro-batch."""

        def pack(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
            kept = tensor.detach()  # handing back `tensor` itself would make a circle that W never breaks
            key = self._hold(tensor, stage, micro_batch)
            if key is not None:
                self._drop_with(kept, key)
            return kept, tensor._version  # noqa: SLF001  how often it was written to; torch documents it so

        with torch.autograd.graph.saved_tensors_hooks(pack, _unchanged):
            yield

    def keep(self, stage: int, micro_batch: int, tensors: Sequence[torch.Tensor]) -> None:
        """The stage holds these until `let_go`."""
        keys = [self._hold(tensor, stage, micro_batch) for tensor in tensors]
        self._kept.setdefault((stage, micro_batch), []).extend(key for key in keys if key is not None)

    def let_go(self, stage: int, micro_batch: int) -> None:
        """The stage's backward is over."""
        for key in self._kept.pop((stage, micro_batch), ()):
            self._drop(key)

    def keep_gradients(self, stage: int, micro_batch: int, tensors: Sequence[torch.Tensor]) -> None:
        """I leaves these for W."""
        sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        self._between[stage, micro_batch] = sum(sizes.values())
        self._change(True, Category.WEIGHT_GRADIENTS, stage, micro_batch, sum(sizes.values()))

    def let_go_gradients(self, stage: int, micro_batch: int) -> None:
        """W is over."""
        held = self._between.pop((stage, micro_batch), 0)
        self._change(True, Category.WEIGHT_GRADIENTS, stage, micro_batch, -held)

    def _hold(self, tensor: torch.Tensor, stage: int, micro_batch: int) -> tuple[int, int] | None:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if not size or address in self._owned:
            return None
        key = self._rank_of_stage[stage], address
        if key not in self._live:
            self._live[key] = _Held(stage, micro_batch, size)
            self._change(False, Category.ACTIVATIONS, stage, micro_batch, size)
        self._live[key].holders += 1
        return key

    def _drop(self, key: tuple[int, int]) -> None:
        held = self._live[key]
        held.holders -= 1
        if not held.holders:
            del self._live[key]
            self._change(True, Category.ACTIVATIONS, held.stage, held.micro_batch, -held.bytes)

    def _drop_with(self, tensor: torch.Tensor, key: tuple[int, int]) -> None:
        def died(reference: Any) -> None:
            del self._references[id(reference)]
            self._drop(key)

        reference = weakref.ref(tensor, died)
        self._references[id(reference)] = reference

    def _change(self, at_end: bool, category: Category, stage: int, micro_batch: int, delta: int) -> None:
        if delta:
            self._changes.append(Change(at_end, category, self._rank_of_stage[stage], stage, micro_batch, delta))


def _unchanged(packed: tuple[torch.Tensor, int]) -> torch.Tensor:
    """What was saved, if nobody has written to it since: where hooks are set, autograd leaves this check to them.

    Raises:
        RunError: if an operation in place has changed it, so that gradients would be wrong.
    """
    tensor, version = packed
    if tensor._version != version:  # noqa: SLF001
        raise RunError(
            "what a forward keeps for its backward must stay as it is; an operation in place has changed a tensor of "
            f"shape {tuple(tensor.shape)}; use the operation that makes a new one (x = x + 1, not x += 1)"
        )
    return tensor
