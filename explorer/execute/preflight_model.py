"""Pre-flight rules on the model: what each stage holds, and which layers behave otherwise in a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from explorer.execute.preflight_case import Case
from explorer.execute.preflight_report import ERROR, NOTE, WARNING, Finding
from explorer.execute.stages import Chain
from explorer.execute.traits import draws, names_of, normalises_batch


def layers_conserved(case: Case) -> Iterator[Finding]:
    """Every parameter of the model lies in exactly one stage, every layer once and in order."""
    chains = [stage for stage in case.model.stages if isinstance(stage, Chain)]
    if len(chains) == len(case.model.stages):
        sizes = " ".join(str(len(chain.names)) for chain in chains)
        n_layers = sum(len(chain.names) for chain in chains)
        yield Finding(
            NOTE,
            "every layer lies in exactly one stage, in order",
            f"{n_layers} layers on {len(chains)} stages: {sizes}",
            "",
        )
        kept = [name for chain in chains for name in chain.names]
        if kept != [n for n, _ in case.model.whole.named_modules(remove_duplicate=False) if n and "." not in n]:
            yield Finding(ERROR, "every layer lies in exactly one stage, in order", f"got {', '.join(kept)}", "")
    lost = [name for name, _ in case.model.whole.named_parameters() if name not in case.model.parameters]
    if lost:
        few = ", ".join(lost[:4]) + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
        yield Finding(
            WARNING,
            "every parameter lies in exactly one stage",
            f"{few} in none, for the forward does not use it",
            "leave it out of the model, or use it",
            "model",
        )


def nothing_to_train(case: Case) -> Iterator[Finding]:
    """Stages without a parameter that learns."""
    if not case.program.has_backward:
        return
    idle = [s for s in range(case.program.n_stages) if not any(p.requires_grad for p in case.model.of_stage(s))]
    if idle:
        which = ", ".join(map(str, idle))
        yield Finding(
            NOTE,
            "a stage's optimizer needs something to train",
            f"stage {which} has no parameter that requires a gradient",
            "it runs, and is not updated",
        )


def cut_off(case: Case) -> Iterator[Finding]:
    """A stage whose outputs carry no gradient back to what lies before it."""
    learns = False
    for stage, sample in enumerate(case.samples[:-1] if case.program.has_backward else ()):
        learns = learns or any(p.requires_grad for p in case.model.of_stage(stage))
        if learns and not any(value.requires_grad for value in sample.outputs):
            yield Finding(
                WARNING,
                "gradients flow back through every stage's outputs",
                f"what stage {stage} hands on requires none, so nothing up to it learns",
                "look for a detach, an argmax or a no_grad there",
                "model",
            )


def looks_at_batch(case: Case) -> Iterator[Finding]:
    """Layers whose result depends on how the batch is cut."""
    layers = [(name, module) for name, module in case.model.whole.named_modules() if normalises_batch(module)]
    if not layers and not case.traits.statistics:
        return
    which = names_of(layers) or "a layer that changes a buffer in every forward"
    n, m = case.n_rows, case.n_micro_batches
    yield Finding(
        WARNING,
        "a batch-dependent layer sees micro-batches: its statistics are per micro-batch",
        f"{which} sees {n} rows {m} times a step instead of {n * m} once, and counts {m} batches",
        "use GroupNorm or LayerNorm, or put it into eval()",
        "model",
    )


def draws_at_random(case: Case) -> Iterator[Finding]:
    """Layers that draw random numbers."""
    if case.traits.random:
        layers = [(name, module) for name, module in case.model.whole.named_modules() if draws(module)]
        which = names_of(layers) or "a layer"
        yield Finding(
            NOTE,
            "random numbers are drawn anew for every layer and micro-batch, from the caller's seed",
            f"{which} draws them",
            "a recomputed forward must draw the same: torch.utils.checkpoint does unless preserve_rng_state=False",
        )


def in_place(case: Case) -> Iterator[Finding]:
    """Stages that begin with an operation in place."""
    for number, stage in enumerate(case.model.stages):
        if isinstance(stage, Chain) and stage.copies_input:
            layer = stage.names[0]
            yield Finding(
                NOTE,
                "a stage leaves the message it gets as it is",
                f"layer {layer} ({type(stage.layers[0]).__name__}, stage {number}) works in place",
                "this run hands it a copy; torch's own stages fail there: use inplace=False, or split elsewhere",
                "split_points",
            )


def carried_along(case: Case) -> Iterator[Finding]:
    """What passes through a stage unchanged: how a skip connection travels in a chain of layers."""
    for stage, sample in enumerate(case.samples[:-1]):
        size = sum(sample.outputs[place].nbytes for place in sample.carried)
        if size and stage:
            yield Finding(
                NOTE,
                "a skip connection travels through every stage between its ends",
                f"stage {stage} hands on {size:,} bytes a micro-batch as it got them",
                "split so that both ends share a stage, to save the messages",
            )


def autocast(case: Case) -> Iterator[Finding]:
    """Automatic casts around the run."""
    kind = case.model.device.type
    if not torch.is_autocast_enabled(kind):
        return
    name = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
    if case.backend == "processes":
        yield Finding(
            ERROR,
            "autocast holds for the thread that switched it on",
            f"got it around a run in processes, which would compute without {name}",
            'switch it on within the layers\' forward, or run backend="kernel"',
            "backend",
        )
    else:
        yield Finding(
            NOTE,
            "autocast casts weights anew in every forward of a run, for a kept cast would outlive an update",
            f"got {name}, so results are compared to within that format",
            "",
        )
