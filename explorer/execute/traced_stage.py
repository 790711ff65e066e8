"""A stage as torch's tracer has followed it: one flat list of operations over the model's own tensors.

The tracer gives a module within a module for every part of the model, and none of them can be written down. Flat, a
stage is plain values: operations by name, what they take, and tensors; so it can be sent to a process of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

Named = Mapping[str, torch.Tensor]
_CALL = re.compile(r"@\d+(?=\.|$)")  # behind the name of a part that is called again


@dataclass(frozen=True)
class _From:
    """What another row gives, by its name."""

    name: str


@dataclass(frozen=True)
class _Row:
    """One operation: what torch calls a node, without what it is tied to."""

    kind: str
    name: str
    target: Any
    args: Any
    kwargs: Any


class TracedStage(fx.GraphModule):
    """A stage of operations; it can be sent to a process of ours, and is the same there."""

    def __reduce__(self) -> Any:
        """How to make it again: rows by value, and the tensors they name."""
        used = {str(node.target): _found(self, str(node.target)) for node in self.graph.nodes if node.op == "get_attr"}
        return _stage_of, ([_row(node) for node in self.graph.nodes], used)


def tensors_of(whole: nn.Module) -> Named:
    """A model's parameters and buffers by name; tied ones are there by each of their names."""
    parameters = whole.named_parameters(remove_duplicate=False)
    return {**dict(whole.named_buffers(remove_duplicate=False)), **dict(parameters)}


def flat(module: fx.GraphModule, tensors: Named) -> TracedStage:
    """A stage that does what `module` does, over the model's own tensors.

    Args:
        module: as the tracer gives it, with modules for parts of it, and copies of what several of them use.
        tensors: of the caller's model.
    """
    graph = fx.Graph()
    used: dict[str, Any] = {}
    graph.output(_Flattening(graph, used, tensors).of(module, "", None))
    return TracedStage(used, graph)


class _Flattening:
    """Puts the operations of modules within modules into one graph.

    Args:
        graph: to put them into.
        used: name → tensor, to be filled.
        tensors: of the caller's model.
    """

    def __init__(self, graph: fx.Graph, used: dict[str, Any], tensors: Named) -> None:
        self._graph, self._used, self._tensors = graph, used, tensors

    def of(self, module: Any, prefix: str, given: Sequence[Any] | None) -> Any:
        """Put those of one module; what it gives.

        Args:
            module: with a graph.
            prefix: of its names.
            given: what it is called with; None for what the stage is called with.
        """
        known: dict[fx.Node, Any] = {}
        inputs = None if given is None else iter(given)
        for node in module.graph.nodes:
            args, kwargs = (fx.map_arg(taken, known.__getitem__) for taken in (node.args, node.kwargs))
            if node.op == "output":
                return args[0]
            if node.op == "placeholder":
                known[node] = self._graph.placeholder(node.name) if inputs is None else next(inputs)
            elif node.op == "get_attr":
                known[node] = self._attribute(module, prefix, str(node.target))
            elif node.op == "call_module":
                part = module.get_submodule(str(node.target))
                known[node] = self.of(part, f"{prefix}{node.target}.", [*args, *kwargs.values()])
            else:
                known[node] = self._graph.create_node(node.op, node.target, args, kwargs)
        return None

    def _attribute(self, module: nn.Module, prefix: str, target: str) -> fx.Node:
        name = _CALL.sub("", prefix + target)
        # what two stages use, the tracer has copied: such copies would be trained apart, and nobody would know
        value = self._tensors.get(name, _found(module, target))
        self._used.setdefault(name, value)
        return self._graph.get_attr(name)


def _found(module: nn.Module, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _by_name(node: fx.Node) -> _From:
    return _From(node.name)


def _row(node: fx.Node) -> _Row:
    by_name: Any = _by_name  # torch has it that only what its own graphs hold comes of it
    args, kwargs = (fx.map_arg(taken, by_name) for taken in (node.args, node.kwargs))
    return _Row(node.op, node.name, _named(node.target), args, kwargs)


def _named(target: Any) -> Any:
    """One of torch's operations by its names; a function goes as it is."""
    if isinstance(target, torch._ops.OpOverload):  # noqa: SLF001  it has no public name
        namespace, _, name = target._schema.name.partition("::")  # noqa: SLF001
        return namespace, name, target._overloadname  # noqa: SLF001
    return target


def _operation(target: Any) -> Any:
    """What `_named` was given."""
    if not isinstance(target, tuple):
        return target
    namespace, name, overload = target
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)


def _stage_of(rows: Sequence[_Row], used: Mapping[str, Any]) -> TracedStage:
    """A stage from its rows and tensors."""
    graph, made = fx.Graph(), dict[str, fx.Node]()

    def given(value: Any) -> Any:
        return made[value.name] if isinstance(value, _From) else value

    for row in rows:
        args, kwargs = (fx.node.map_aggregate(taken, given) for taken in (row.args, row.kwargs))
        made[row.name] = graph.create_node(row.kind, _operation(row.target), args, kwargs, row.name)
    return TracedStage(dict(used), graph)
