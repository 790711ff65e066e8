"""A model that is no sequence of layers, cut by torch's own tracer at the submodules its user names."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.distributed import pipelining

from explorer.errors import ModelError
from explorer.execute.stages import CutModel, check_count, first_line, refuse_shared
from explorer.execute.traced_stage import flat, tensors_of

Values = tuple[torch.Tensor, ...]
_SHAPES = "torch.fx.experimental.symbolic_shapes"


def cut_by_tracing(whole: nn.Module, n_stages: int, *, split_points: Sequence[str], sample: Values) -> CutModel:
    """Stages that share the parameters of `whole`, each beginning where a split point's submodule is called.

    Args:
        whole: the run's own copy.
        n_stages: the program's.
        split_points: names of submodules, in the order they are called.
        sample: one micro-batch of inputs.

    Raises:
        ModelError: if a name is unknown, the model cannot be traced, or a value skips a stage.
    """
    known = {name for name, _ in whole.named_modules() if name}
    unknown = next((name for name in split_points if name not in known), None)
    if unknown is not None:
        raise ModelError(
            f"a split point names a submodule; got {unknown!r}; this model has {', '.join(sorted(known))}",
            argument="split_points",
        )
    check_count(len(set(split_points)), n_stages)
    pipe = _trace(whole, split_points, sample)
    if pipe.num_stages != n_stages:
        raise ModelError(
            f"each split point begins a stage behind the one before; these make {pipe.num_stages} stages, and the "
            f"program has {n_stages}; name submodules that are called, other than the first",
            argument="split_points",
        )
    _refuse_skips(pipe.split_gm)
    tensors = tensors_of(whole)
    stages: list[nn.Module] = [flat(pipe.get_stage_module(stage), tensors) for stage in range(n_stages)]
    named = [dict(stage.named_parameters()) for stage in stages]
    refuse_shared(named)
    return CutModel(whole, stages, named)


def _trace(whole: nn.Module, split_points: Sequence[str], sample: Values) -> Any:
    """The model as torch's tracer has followed and split it."""
    spec = dict.fromkeys(split_points, pipelining.SplitPoint.BEGINNING)
    given: list[Any] = []
    watch = whole.register_forward_hook(lambda *called: given.append(called[-1]))
    try:
        with _without_its_graph(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own parts about each other
            pipe = pipelining.pipeline(whole, tuple(sample), split_spec=spec)
    except Exception as error:
        _refuse_output(whole, given)
        raise ModelError(
            f"a model with split points is followed by torch's tracer with one micro-batch; {type(whole).__name__} "
            f"cannot be: {first_line(error.__cause__ or error)}; give a list of layers instead",
            argument="model",
        ) from error
    finally:
        watch.remove()
    _refuse_output(whole, given)
    return pipe


@contextlib.contextmanager
def _without_its_graph() -> Iterator[None]:
    """A tracer that fails writes and logs the graph it had until then; what a model has written is passed on."""
    logger, written = logging.getLogger(_SHAPES), io.StringIO()
    before, logger.disabled = logger.disabled, True
    try:
        with contextlib.redirect_stderr(written):
            yield
        if sys.stderr is not None:
            sys.stderr.write(written.getvalue())
    finally:
        logger.disabled = before


def _refuse_output(whole: nn.Module, given: Sequence[Any]) -> None:
    """The tracer's stages hand on the tensors in a dict or list, and the loss would not get what the model gives."""
    for output in given:
        parts = output if isinstance(output, tuple) else (output,)
        odd = next((type(part).__name__ for part in parts if not isinstance(part, torch.Tensor)), None)
        if odd is not None or not parts:
            raise ModelError(
                f"stages hand tensors to each other; {type(whole).__name__} gives {odd or 'an empty tuple'}; give a "
                "tensor or a tuple of tensors",
                argument="model",
            )


class Skip(NamedTuple):
    """A value that goes around a stage.

    Attributes:
        giver: the stage it comes from; −1 is the batch.
        taker: the stage that needs it.
        name: of the value, as the tracer has it.
        shape: of one micro-batch's.
        bytes: of one micro-batch's.
    """

    giver: int
    taker: int
    name: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        giver = f"stage {self.giver}" if self.giver >= 0 else f"the input {self.name}"
        return f"stage {self.taker} also needs what {giver} gives, {self.shape}, {self.bytes:,} bytes a micro-batch"


def skips_of(split: fx.GraphModule) -> list[Skip]:
    """Every value that a stage needs and the stage before it does not give."""
    calls = [node for node in split.graph.nodes if node.op == "call_module"]
    found = []
    for taker, call in enumerate(calls):
        stage: Any = split.get_submodule(str(call.target))
        inner = [node for node in stage.graph.nodes if node.op == "placeholder"]
        for argument, inside in zip(call.args, inner, strict=True):
            source = _source(argument)
            giver = calls.index(source) if source in calls else -1
            if giver != taker - 1:
                value = inside.meta["val"]
                shape, size = tuple(map(int, value.shape)), int(value.numel()) * int(value.element_size())
                found.append(Skip(giver, taker, source.name if giver < 0 else inside.name, shape, size))
    return found


def _refuse_skips(split: fx.GraphModule) -> None:
    """A stage hands its outputs to the next one alone, so nothing may go around it."""
    found = skips_of(split)
    if found:
        raise ModelError(
            f"stages hand tensors to the next one only; {', '.join(map(str, found))}; move the split points, so that "
            "nothing goes around a stage, or hand it along as part of a tuple from layer to layer",
            argument="split_points",
        )


def _source(node: fx.Node) -> fx.Node:
    """The stage or input that a value comes from, behind the taking apart of tuples."""
    while node.op == "call_function" and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node
