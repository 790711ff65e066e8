"""Every private name of torch that a run needs, and the one-rank group that owns all stages.

The engine is torch's own: `_PipelineScheduleRuntime` runs our order, `PipelineStage` every forward and backward.
What is overridden guards a trap of theirs:

- losses are looked up by the index they were appended at, so a last stage that takes micro-batches out of order
  trains on wrong gradients: here they are kept by micro-batch;
- gradients are divided by the number of micro-batches in place, once a step, so kept ones are divided twice: here
  the loss is divided instead;
- a table without backwards is refused, and `eval()` fails where neighbouring stages share a rank: here the order is
  our own checked program, put in place without theirs;
- a stage's received input stays until the next step: here it is let go when its backward is over;
- I detaches a stage's output in place, which fails where a stage ends with a view, as Flatten gives it: there the
  output is replaced by an alias that is none;
- W goes on from what I has led to the inputs, and leaves out what no input led to: here it has that too;
- torch 2.12 counts the gradient of a weight that one stage uses twice more than once in W: here it does not.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import nn

from explorer.core import Action, Kind
from explorer.errors import EngineError, RunError
from explorer.execute.split_backward import Unled, backward_of, counted_once, detachable, unled

_SCHEDULES = "torch.distributed.pipelining.schedules"
_STAGE = "torch.distributed.pipelining.stage"
_NEEDED = {
    _SCHEDULES: ("_PipelineScheduleRuntime", "_Action", "_ComputationType"),
    _STAGE: ("PipelineStage",),
}
_METHODS = {
    "_PipelineScheduleRuntime": (
        *("_step_microbatches", "_maybe_compute_loss", "_maybe_get_loss", "_update_losses", "_compute_loss"),
    ),
    "PipelineStage": (
        *("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk", "clear_runtime_states"),
        *("set_local_bwd_input", "forward_maybe_with_nosync"),
    ),
}


def probe() -> dict[str, Any]:
    """The private parts of torch by name.

    Raises:
        EngineError: naming what is missing.
    """
    found: dict[str, Any] = {}
    missing = [] if torch.distributed.is_available() else ["torch.distributed"]
    for home, names in _NEEDED.items() if not missing else ():
        try:
            module = importlib.import_module(home)
        except ImportError:
            missing.append(home)
            continue
        for name in names:
            found[name] = getattr(module, name, None)
            lacking = [f"{name}.{method}" for method in _METHODS.get(name, ()) if not hasattr(found[name], method)]
            missing += lacking if found[name] is not None else [f"{home}.{name}"]
    if missing:
        raise EngineError(
            f"a run needs torch 2.12 or newer with {', '.join(missing)}; this is torch {torch.__version__}; "
            'try pip install "torch>=2.12", or simulate'
        )
    return found


class Watch(Protocol):
    """Who is told of each action, around the work itself."""

    def begin(self, kind: Kind, stage: int, micro_batch: int) -> None:
        """The action is about to run."""

    def saving(self, stage: int, micro_batch: int) -> AbstractContextManager[Any]:
        """Within it, autograd keeps tensors of this stage and micro-batch."""

    def end(self, kind: Kind, stage: int, micro_batch: int, kept: Sequence[torch.Tensor] = ()) -> None:
        """The action has run; `kept` is what the stage holds on to for later."""

    def loss(self, micro_batch: int, loss: torch.Tensor) -> None:
        """The last stage has come to a loss."""


_parts = probe()
_schedules: Any = importlib.import_module(_SCHEDULES)
_INTERFACE, _LOOPBACKS = "GLOO_SOCKET_IFNAME", ("lo", "lo0")
BEFORE_2_13 = torch.__version__ < "2.13"  # a version of torch's, which compares by its numbers
_Base: Any = _parts["PipelineStage"]
_Runtime: Any = _parts["_PipelineScheduleRuntime"]


class Stage(_Base):  # type: ignore[misc]
    """A stage that tells its watch when it works."""

    def __init__(
        self,
        module: nn.Module,
        index: int,
        n_stages: int,
        *,
        inputs: tuple[torch.Tensor, ...],
        outputs: tuple[torch.Tensor, ...],
        watch: Watch,
        computes_loss: bool,
    ) -> None:
        device = inputs[0].device
        # samples given, torch runs no hidden forward of its own to infer shapes
        super().__init__(module, index, n_stages, device, input_args=inputs, output_args=outputs)
        self._watch = watch
        self._computes_loss = computes_loss
        self._unled: dict[int, Unled] = {}  # by micro-batch, between I and W

    def forward_one_chunk(
        self, fwd_chunk_id: int, args: Any, kwargs: Any = None, save_forward_output: bool = True
    ) -> Any:
        """Torch's own, between begin and end; where a loss follows, that ends it."""
        self._watch.begin(Kind.F, self.stage_index, fwd_chunk_id)
        with self._watch.saving(self.stage_index, fwd_chunk_id):
            output = super().forward_one_chunk(fwd_chunk_id, args, kwargs, save_forward_output)
        if not self._computes_loss:
            self.end_forward(fwd_chunk_id)
        return output

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """Torch's own; a named tuple, which it would take for one value, as the plain one that it is."""
        output = super().forward_maybe_with_nosync(*args, **kwargs)
        return tuple(output) if isinstance(output, tuple) else output

    def end_forward(self, micro_batch: int) -> None:
        """Tell the watch, with the input and output that torch keeps until the backward."""
        outputs, inputs = self.fwd_cache[micro_batch]
        kept = [tensor for tensor in (*inputs, *outputs) if isinstance(tensor, torch.Tensor)]
        self._watch.end(Kind.F, self.stage_index, micro_batch, kept)
        if not self.has_backward:
            self._forget(micro_batch)

    def _forget(self, micro_batch: int) -> None:
        """Let go of what only a backward would need."""
        del self.fwd_cache[micro_batch]
        self._let_go(micro_batch)

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Torch's own, between begin and end."""
        kind = Kind.B if full_backward else Kind.I
        self._watch.begin(kind, self.stage_index, bwd_chunk_id)
        if not full_backward:
            self._prepare_input_backward(bwd_chunk_id, loss)
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)
        if full_backward:
            self._let_go(bwd_chunk_id)
        del loss
        self._watch.end(kind, self.stage_index, bwd_chunk_id, [] if full_backward else self._kept(bwd_chunk_id))

    def _prepare_input_backward(self, micro_batch: int, loss: Any) -> None:
        """Have I meet outputs that it can detach in place, and keep for W what I does not pass."""
        outputs, inputs = self.fwd_cache[micro_batch]
        outputs = tuple(map(detachable, outputs))
        if not self.is_first:
            found = self._unled[micro_batch] = unled((loss,) if self.is_last else outputs, inputs)
            if found and self.is_last:  # W then goes through the loss, which has saved them
                outputs = tuple(output.detach() for output in outputs)
        self.fwd_cache[micro_batch] = outputs, inputs

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Torch's own, between begin and end."""
        self._watch.begin(Kind.W, self.stage_index, bwd_chunk_id)
        _, groups, _, grads = self.backward_state.get(bwd_chunk_id) or ((), (), (), None)
        backward_of(self._unled.pop(bwd_chunk_id, {}), grads, list(self.submod.parameters()))  # torch frees the graph
        # stage 0 has its whole backward in W
        with counted_once(groups or ()) if self.stage_index and BEFORE_2_13 else contextlib.nullcontext():
            super().backward_weight_one_chunk(bwd_chunk_id, last_backward)
        self._let_go(bwd_chunk_id)
        self._watch.end(Kind.W, self.stage_index, bwd_chunk_id)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple[torch.Tensor | None, ...], mb_index: int) -> None:
        """Torch's own, with zeros where the next stage did not use an input."""
        known = zip(next_stage_bwd_outputs, self.grad_recv_info[mb_index], strict=True)
        filled = tuple(
            torch.zeros_like(info.buffer) if grad is None and info.buffer is not None else grad for grad, info in known
        )
        super().set_local_bwd_input(filled, mb_index)

    def _kept(self, micro_batch: int) -> list[torch.Tensor]:
        """The gradients that I leaves for W."""
        _, groups, _, output_grads = self.backward_state[micro_batch]
        grads = [grad for group in groups or () for grad in group.get("grads", ())]
        return [grad for grad in (*grads, *(output_grads or ())) if isinstance(grad, torch.Tensor)]

    def _let_go(self, micro_batch: int) -> None:
        for info in self.args_recv_info[micro_batch]:
            info.buffer = None


class Engine(_Runtime):  # type: ignore[misc]
    """Torch's runtime over all stages, fed with an order of ours. After an exception it must not be used again."""

    def __init__(
        self, stages: Sequence[Stage], n_micro_batches: int, loss: Any, *, trains: bool, order: Sequence[Action]
    ) -> None:
        super().__init__(list(stages), n_micro_batches, loss_fn=loss, scale_grads=False)
        self._has_backward = trains
        self._pending: dict[int, torch.Tensor] = {}
        action, kinds = _parts["_Action"], _parts["_ComputationType"]
        self.pipeline_order_with_comms = {0: [action(a.stage, kinds(a.kind.name), a.micro_batch) for a in order]}

    def run(self, inputs: Sequence[tuple[torch.Tensor, ...]], targets: Sequence[torch.Tensor] | None) -> None:
        """One step over these micro-batches."""
        self._pending.clear()
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        with torch.set_grad_enabled(self._has_backward), _unmarked():
            targets = None if targets is None else list(targets)
            self._step_microbatches(list(inputs), None, targets, None, return_outputs=False)

    def _maybe_compute_loss(
        self, stage: Any, output: Any, target_mbs: Any, mb_index: int, loss_kwargs: Any = None
    ) -> None:
        if not stage.is_last:
            return
        if self._loss_fn is not None:
            with stage._watch.saving(stage.stage_index, mb_index):
                loss = self._compute_loss(output, target_mbs[mb_index])
                if self._has_backward:
                    self._pending[mb_index] = loss / self._n_microbatches
            stage.end_forward(mb_index)
            stage._watch.loss(mb_index, loss.detach())

    def _maybe_get_loss(self, stage: Any, mb_index: int) -> torch.Tensor | None:
        return self._pending.pop(mb_index) if stage.is_last else None

    def _update_losses(self, stages: Any, losses: Any) -> None:
        self._pending.clear()


@contextlib.contextmanager
def _unmarked() -> Iterator[None]:
    """Within it, torch marks no action for its profiler, unless one listens: marks take some 0.5 % of a step."""
    marked, autograd = getattr(_schedules, "record_function", None), _schedules.torch.autograd
    if marked is None or autograd._profiler_enabled():
        yield
        return
    _schedules.record_function = contextlib.nullcontext
    try:
        yield
    finally:
        _schedules.record_function = marked


@contextlib.contextmanager
def one_rank_group() -> Iterator[None]:
    """A process group of this process alone, gone afterwards.

    Raises:
        RunError: if the process already has a default group: that is its owner's, and torch knows but one.
    """
    distributed: Any = torch.distributed
    if distributed.is_initialized():
        raise RunError(
            f"a run in the kernel makes a one-rank process group of its own; this process already has a default group "
            f"({distributed.get_backend()}, {distributed.get_world_size()} ranks); run before it is made or after "
            "torch.distributed.destroy_process_group()"
        )
    with on_loopback(), _excepthook_kept():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        try:
            yield
        finally:
            distributed.destroy_process_group()


@contextlib.contextmanager
def _excepthook_kept() -> Iterator[None]:
    """Torch wraps `sys.excepthook` for every group it makes, and leaves it so."""
    before = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = before


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Torch logs the whole table when a step fails; who runs it gets one sentence instead."""
    logger = logging.getLogger(_SCHEDULES)
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@contextlib.contextmanager
def on_loopback() -> Iterator[None]:
    """Within it, gloo listens on this machine's loopback alone.

    Else it does where this machine's name leads to, or where the environment says. Torch hands it no options.
    """
    loopback = next((name for _, name in socket.if_nameindex() if name in _LOOPBACKS), None)
    before = os.environ.get(_INTERFACE)
    if loopback is not None:
        os.environ[_INTERFACE] = loopback
    try:
        yield
    finally:
        os.environ.pop(_INTERFACE, None)
        if before is not None:
            os.environ[_INTERFACE] = before
