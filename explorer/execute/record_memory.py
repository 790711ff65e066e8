"""The memory of a recorded schedule: followed in one step, since it is the same in all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from explorer.core import Category, Kind
from explorer.execute.activations import Activations, Change

Row = tuple[int, bool, str, int, int, int]  # place of the action, at its end, category, stage, micro-batch, bytes


class StepMemory:
    """Follows what stages hold during one step.

    Kept for their backwards: what autograd saves and torch's stages hold themselves. There from the start: parameters,
    and the buffers that torch receives messages into. Gradients count from a stage's first backward.

    Args:
        stages: torch's stage objects of this rank.
        rank: of the pipeline, for the rows.
        n_stages: over all ranks.
    """

    def __init__(self, stages: Sequence[Any], rank: int, n_stages: int) -> None:
        self._stages, self._rank, self._n_stages = stages, rank, n_stages
        self._activations: Activations | None = None
        self._with_gradients: set[int] = set()
        self.rows: list[Row] = []

    def started(self) -> Activations:
        """What counts activations, made when the first action begins: only then are torch's buffers there."""
        if self._activations is None:
            owned: set[int] = set()
            for stage in self._stages:
                parameters = [*stage.submod.parameters(), *stage.submod.buffers()]
                received = [info.buffer for info in _infos(stage) if isinstance(info.buffer, torch.Tensor)]
                for category, tensors in ((Category.PARAMETERS, parameters), (Category.RECEIVE_BUFFERS, received)):
                    self._add(Change(False, category, self._rank, stage.stage_index, -1, _bytes(tensors)), place=-1)
                    owned |= {tensor.untyped_storage().data_ptr() for tensor in tensors}
            self._activations = Activations([self._rank] * self._n_stages, owned)
        return self._activations

    @contextlib.contextmanager
    def running(self, kind: Kind, stage: Any, micro_batch: int) -> Iterator[None]:
        """Within it, an action runs."""
        activations = self.started()
        if kind != Kind.F or not stage.has_backward:
            yield
            return
        with activations.saving(stage.stage_index, micro_batch):
            yield

    def ran(self, kind: Kind, stage: Any, micro_batch: int, place: int) -> None:
        """The action at `place` of the step has run."""
        activations, index = self.started(), stage.stage_index
        if kind == Kind.F and stage.has_backward:
            outputs, inputs = stage.fwd_cache[micro_batch]
            kept = [tensor for tensor in (*inputs, *outputs) if isinstance(tensor, torch.Tensor)]
            activations.keep(index, micro_batch, kept)
        elif kind == Kind.I:
            activations.keep_gradients(index, micro_batch, _left_for_weights(stage, micro_batch))
        elif kind in (Kind.B, Kind.W):
            activations.let_go(index, micro_batch)
            activations.let_go_gradients(index, micro_batch)
            if index not in self._with_gradients:
                self._with_gradients.add(index)
                trained = [parameter for parameter in stage.submod.parameters() if parameter.requires_grad]
                self._add(Change(False, Category.GRADIENTS, self._rank, index, -1, _bytes(trained)), place)
        self.drain(place)

    def drain(self, place: int) -> None:
        """Take what has changed since the action before as of the one at `place`."""
        if self._activations is not None:
            for change in self._activations.changes():
                self._add(change, place)

    def _add(self, change: Change, place: int) -> None:
        if change.delta:
            at_end, category, _, stage, micro_batch, delta = change
            self.rows.append((place, at_end, category.name, stage, micro_batch, delta))

    def added_up(self) -> list[Row]:
        """One row for each purpose and moment, where autograd saved many tensors."""
        sums: dict[tuple[int, bool, str, int, int], int] = {}
        for *what, delta in self.rows:
            key: Any = tuple(what)
            sums[key] = sums.get(key, 0) + delta
        return [(*what, delta) for what, delta in sums.items() if delta]


def _infos(stage: Any) -> list[Any]:
    """What torch knows of the messages a stage receives: forward by micro-batch, and backward."""
    forward = getattr(stage, "args_recv_info", {}).values()
    backward = getattr(stage, "grad_recv_info", {}).values()
    return [info for infos in (*forward, *backward) for info in infos if hasattr(info, "buffer")]


def _left_for_weights(stage: Any, micro_batch: int) -> list[torch.Tensor]:
    """The gradients that I leaves for W."""
    _, groups, _, output_grads = getattr(stage, "backward_state", {}).get(micro_batch, (None, (), None, ()))
    grads = [grad for group in groups or () for grad in group.get("grads", ())]
    return [grad for grad in (*grads, *(output_grads or ())) if isinstance(grad, torch.Tensor)]


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
