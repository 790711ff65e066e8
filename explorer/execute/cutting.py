"""Cut a model into as many contiguous stages as a program has, as even as can be."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from explorer.errors import ModelError
from explorer.execute.stages import Chain, CutModel, Values, check_count, first_line, refuse_shared
from explorer.execute.traced import cut_by_tracing


def cut(model: Any, n_stages: int, *, split_points: Sequence[str] | None, sample: Values) -> CutModel:
    """A copy of `model` cut into `n_stages` contiguous stages.

    Args:
        model: a list of layers, an nn.Sequential, or any nn.Module with split points.
        n_stages: how many.
        split_points: names of the submodules where a new stage begins; None cuts layers as evenly as can be.
        sample: one micro-batch, by which torch's tracer follows a model that is no sequence of layers.

    Raises:
        ModelError: if the model cannot be copied, or not be cut so.
    """
    whole = _copy(model)
    _refuse_patched(whole)
    _refuse_unmade(whole)
    _refuse_sparse(whole)
    layers = layers_of(whole)
    if layers is None and n_stages == 1 and not split_points:
        return CutModel(whole, [whole], [dict(whole.named_parameters())])
    if layers is None and split_points is None:
        raise ModelError(
            "a model is a list of layers, an nn.Sequential, or any nn.Module with split_points; got "
            f"{type(model).__name__} without; name the submodules where a new stage begins",
            argument="split_points",
        )
    if layers is None:
        return cut_by_tracing(whole, n_stages, split_points=list(split_points or ()), sample=sample)
    bounds = bounds_of([name for name, _ in layers], n_stages, split_points)
    parts = [layers[a:b] for a, b in pairwise(bounds)]
    named = [
        {f"{name}.{inner}": parameter for name, layer in part for inner, parameter in layer.named_parameters()}
        for part in parts
    ]
    refuse_shared(named)
    return CutModel(whole, [Chain(part).train(whole.training) if part else Chain(part) for part in parts], named)


def layers_of(whole: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """The layers of an nn.Sequential, also those that occur twice; None for a module with a forward of its own."""
    if not isinstance(whole, nn.Sequential) or type(whole).forward is not nn.Sequential.forward:
        return None
    named = whole.named_modules(remove_duplicate=False)
    return [(name, layer) for name, layer in named if name and "." not in name]


def _copy(model: Any) -> nn.Module:
    if isinstance(model, nn.ModuleList) or (isinstance(model, (list, tuple)) and not isinstance(model, nn.Module)):
        wrong = next((layer for layer in model if not isinstance(layer, nn.Module)), None)
        if wrong is not None or not len(model):
            what = f"a {type(wrong).__name__} among them" if len(model) else "an empty one"
            raise ModelError(
                f"a list of layers holds nn.Modules; got {what}; wrap it in an nn.Module", argument="model"
            )
        return nn.Sequential(*_copied(list(model), "the list"))
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"a model is a list of layers, an nn.Sequential, or any nn.Module with split_points; got "
            f"{type(model).__name__}; give one of these",
            argument="model",
        )
    made = _copied(model, type(model).__name__)
    if not isinstance(made, nn.Module):
        raise ModelError(
            f"a run works on a copy of the model; a copy of {type(model).__name__} is {type(made).__name__}; mend its "
            "__reduce__ or __deepcopy__",
            argument="model",
        )
    return made


def _copied(model: Any, called: str) -> Any:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise ModelError(
            f"a run works on a copy of the model; {called} cannot be copied: {first_line(error)}; give the class "
            "of what cannot a __deepcopy__",
            argument="model",
        ) from error


def _refuse_patched(whole: nn.Module) -> None:
    """A forward put upon a module itself would call the caller's layer from within the copy; others hide theirs."""
    for name, module in whole.named_modules():
        called = name or type(module).__name__
        if type(module).__module__.startswith("torch._dynamo"):
            came = f"{called} is what torch.compile gave; give the module itself, or compile it by module.compile()"
        elif "forward" in vars(module):
            came = f"the module {called} has one of its own; give it a class, or a forward hook"
        elif isinstance(module, torch.jit.ScriptModule):
            came = f"the module {called} is scripted, and tells nobody when it runs; give the one it was made of"
        else:
            continue
        raise ModelError(
            f"a run works on a copy of the model, so each forward must be its class's; {came}", argument="model"
        )


def _refuse_sparse(whole: nn.Module) -> None:
    for name, module in whole.named_modules():
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse:
            raise ModelError(
                f"gradients are measured and compared as dense ones; {name or type(module).__name__} has sparse=True; "
                "give it sparse=False",
                argument="model",
            )


def _refuse_unmade(whole: nn.Module) -> None:
    """Weights that are made at the first forward would be others in each copy, and those on "meta" hold no numbers."""
    for name, parameter in whole.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            came = (
                f"{name}, which a lazy module makes at its first forward; call the model once on a micro-batch before"
            )
        elif parameter.is_meta:
            came = (
                f'{name} on device meta; make the model elsewhere, or call to_empty(device="cpu") and load its weights'
            )
        else:
            continue
        raise ModelError(
            f"a run works on a copy of the model, so its weights must be there; got {came}", argument="model"
        )


def bounds_of(names: list[str], n_stages: int, split_points: Sequence[str] | None) -> list[int]:
    """Where each stage begins among the layers, and the end."""
    if split_points is not None:
        unknown = next((name for name in split_points if name not in names), None)
        if unknown is not None:
            raise ModelError(
                f"a split point names a layer; got {unknown!r}; this model has {', '.join(names)}",
                argument="split_points",
            )
        check_count(len(set(split_points)), n_stages)
        begins = sorted({names.index(name) for name in split_points})
        if begins and begins[0] == 0:
            raise ModelError(
                f"the first stage begins by itself; got a split point at the first layer, {names[0]!r}; leave it out",
                argument="split_points",
            )
        return [0, *begins, len(names)]
    if not names:
        raise ModelError("a model has layers to cut; got none; give one with a layer for each stage", argument="model")
    if n_stages > len(names):
        raise ModelError(
            f"every stage needs a layer of its own; got {n_stages} stages and {len(names)} layers; try "
            f"{len(names)} stages, or a deeper model",
            argument="n_stages",
            legal=(len(names),),
        )
    sizes = [len(part) for part in np.array_split(np.arange(len(names)), n_stages)]
    return [0, *np.cumsum(sizes).tolist()]
