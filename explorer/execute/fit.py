"""Whether a model's parts fit each other: one micro-batch through all layers, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from explorer.core import Action, Kind, Program
from explorer.errors import ExplorerError, ModelError, RunError
from explorer.execute.stages import Chain, CutModel, describe, first_line

Values = tuple[torch.Tensor, ...]

# how torch words that shapes or types do not go together; anything else is the layer's own failure
_MISFIT = re.compile(
    r"shape|size|dimension|channels|must match|dtype|scalar type|same device|positional argument|out of range|"
    r"Expected \d+D|not support",
    re.IGNORECASE,
)

_LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
_MISFITS = (RuntimeError, ValueError, TypeError, IndexError)


class Sample(NamedTuple):
    """What goes into a stage and comes out of it for one micro-batch: empty tensors of the right kind.

    Attributes:
        inputs: what goes in.
        outputs: what comes out.
        carried: places among the outputs of what only passes through.
    """

    inputs: Values
    outputs: Values
    carried: tuple[int, ...] = ()


def fit(model: CutModel, inputs: Values, program: Program) -> tuple[list[Sample], Any]:
    """What each stage takes and gives, and the last one's output.

    Raises:
        ModelError: if a part does not take what the part before gives; it names both and the shapes.
        RunError: if a layer raises something else.
    """
    samples = []
    values: Values = tuple(value.detach().clone() for value in inputs)  # a first layer may work in place
    output: Any = None
    for stage in range(len(model.stages)):
        values = tuple(_fresh(value) for value in values) if stage else values
        before = model.layer_at(stage - 1) if stage else ""
        versions = [value._version for value in values]  # noqa: SLF001  how often it was written to
        output = _through(model, stage, values, before, program)
        outputs = _tensors(output, model, stage)
        carried = _carried(outputs, values, versions)
        samples.append(Sample(tuple(map(_like, values)), tuple(map(_like, outputs)), carried))
        values = outputs
    return samples, output


def _through(model: CutModel, stage: int, values: Values, before: str, program: Program) -> Any:
    module = model.stages[stage]
    arrived: dict[str, str] = {}
    handles = _watch_inputs(module, arrived) if isinstance(module, Chain) else []
    try:
        return _or_of_a_copy(module, values)
    except ExplorerError:
        raise
    except Exception as error:
        if not isinstance(error, _MISFITS) or not _MISFIT.search(str(error)):
            action = describe(
                Action(Kind.F, stage, 0), int(program.placement.rank_of(stage, 0)), "before the first step"
            )
            layer = f"in layer {model.layer_at(stage)}" if model.layer_at(stage) else "in its module"
            raise RunError(
                f"every action must run through; {action} failed {layer}: {first_line(error)}; mend it there"
            ) from error
        raise _misfit(model, stage, before, arrived, values, error) from error
    finally:
        for remove in handles:
            remove()


def _or_of_a_copy(module: nn.Module, values: Values) -> Any:
    """What a stage gives; one that begins with an operation in place is given copies from now on.

    The whole model may do so, for there the layer before made what it works on; at the beginning of a stage that is a
    message, of which autograd lets nobody change a thing.
    """
    try:
        return module(*values)
    except RuntimeError as error:
        if not isinstance(module, Chain) or module.copies_input or _LEAF not in str(error):
            raise
    module.copies_input = True
    return module(*values)


def _carried(outputs: Values, inputs: Values, versions: list[int]) -> tuple[int, ...]:
    """Places among the outputs of what is an input, unchanged."""
    kept = {v.data_ptr() for v, version in zip(inputs, versions, strict=True) if v._version == version and v.numel()}  # noqa: SLF001
    return tuple(place for place, value in enumerate(outputs) if value.data_ptr() in kept)


def _misfit(
    model: CutModel, stage: int, before: str, arrived: dict[str, str], values: Values, error: Exception
) -> ModelError:
    module = model.stages[stage]
    if not isinstance(module, Chain):
        where = f"stage {stage} does not take {_shapes(values)} from stage {stage - 1}"
        return ModelError(f"a model's parts must fit each other; {where} ({first_line(error)})", argument="model")
    place = module.names.index(module.at)
    before = module.names[place - 1] if place else before
    layer = f"layer {module.at} ({type(module.layers[place]).__name__}, stage {stage})"
    giver = f"layer {before}" if before else "the batch"
    shape = arrived.get(module.at, _shapes(values))
    return ModelError(
        f"a model's parts must fit each other; {layer} does not take what {giver} gives, {shape}: {first_line(error)}; "
        "change one of the two",
        argument="model",
    )


def _watch_inputs(module: Chain, arrived: dict[str, str]) -> list[Callable[[], None]]:
    def note(name: str) -> Callable[[Any, Any], None]:
        def hook(_: Any, values: Any) -> None:
            arrived[name] = _shapes(values)

        return hook

    pairs = zip(module.names, module.layers, strict=True)
    return [layer.register_forward_pre_hook(note(name)).remove for name, layer in pairs]


def _tensors(output: Any, model: CutModel, stage: int) -> Values:
    values = tuple(output) if isinstance(output, (tuple, list)) else (output,)
    wrong = [type(value).__name__ for value in values if not isinstance(value, torch.Tensor)]
    if wrong or not values:
        layer = f", which ends with layer {model.layer_at(stage)}," if model.layer_at(stage) else ""
        raise ModelError(
            f"stages hand tensors to each other, and the last one to the loss; stage {stage}{layer} gives "
            f"{wrong[0] if wrong else 'nothing'}; give a tensor or a tuple of tensors, by a module around it",
            argument="model",
        )
    return values


def _fresh(value: torch.Tensor) -> torch.Tensor:
    """As the next stage gets it: cut off from the stage before."""
    return value.detach().requires_grad_(value.requires_grad)


def _like(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(value).detach().requires_grad_(value.requires_grad)


def _shapes(values: Any) -> str:
    return ", ".join(
        str(tuple(value.shape)) if isinstance(value, torch.Tensor) else type(value).__name__ for value in values
    )
