"""What a model does that a run must know of, seen by watching one forward."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from explorer.execute.stages import CutModel


class Traits(NamedTuple):
    """What one forward of a model and its loss did.

    Attributes:
        random: whether it draws random numbers.
        statistics: whether it looks at the batch as a whole.
        epsilon: of the coarsest floating-point format that any of its results had.
        depth: how many operations with floating-point results it took.
    """

    random: bool
    statistics: bool
    epsilon: float
    depth: int


class Watch:
    """Within it a forward is watched; behind it buffers are as they were, and `traits` is known.

    Batch normalisation is also known by its type: without running statistics it changes no buffer.
    """

    def __init__(self, model: CutModel) -> None:
        self._model = model
        self._mode: Any = _Results()

    def __enter__(self) -> Watch:
        self._before = _random_state(self._model)
        self._buffers = {b: b.detach().clone() for stage in self._model.stages for b in stage.buffers()}
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)
        drawn = any(not torch.equal(a, b) for a, b in zip(self._before, _random_state(self._model), strict=True))
        changed = any(not torch.equal(buffer, old) for buffer, old in self._buffers.items())
        with torch.no_grad():
            for buffer, old in self._buffers.items():
                buffer.copy_(old)
        formats = self._mode.formats | {p.dtype for p in self._model.whole.parameters() if p.dtype.is_floating_point}
        epsilon = max((torch.finfo(dtype).eps for dtype in formats), default=torch.finfo(torch.float32).eps)
        looks = changed or any(map(normalises_batch, self._model.whole.modules()))
        self.traits = Traits(drawn, looks, epsilon, self._mode.n_results)


class _Results(TorchFunctionMode):
    """Sees what every operation called from Python gives, as autocast makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: set[torch.dtype] = set()
        self.n_results = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = result if isinstance(result, (tuple, list)) else (result,)
        floats = {v.dtype for v in given if isinstance(v, torch.Tensor) and v.dtype.is_floating_point}
        self.formats |= floats
        self.n_results += bool(floats)
        return result


def _random_state(model: CutModel) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if model.device.type == "cuda":
        states.append(torch.cuda.get_rng_state(model.device))
    return states


def normalises_batch(module: nn.Module) -> bool:
    """Whether it is a batch normalisation that uses the statistics of its batch."""
    known = isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm))
    return known and (module.training or module.running_mean is None)


def draws(module: nn.Module) -> bool:
    """Whether it is a dropout that is switched on."""
    return isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0  # noqa: SLF001


def names_of(modules: Iterable[tuple[str, nn.Module]]) -> str:
    """Modules by name and type, the first few."""
    named = [f"{name} ({type(module).__name__})" for name, module in modules]
    return ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
