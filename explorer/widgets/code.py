"""The cell that reproduces what the controls show, and a widget that shows and copies it."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
from collections.abc import Collection
from dataclasses import fields
from typing import Any

import anywidget
import traitlets

from explorer.core import Costs, Trace
from explorer.errors import InputError
from explorer.execute import READY_MODELS
from explorer.execute.fault_words import parse_fault
from explorer.widgets.settings import Settings

_BROWSER = pathlib.Path(__file__).parent / "browser"
_ALWAYS = ("forward", "backward")
_WIDEST = 100  # letters of a line
_MANY = 1e4  # from which on a number is easier to read with its power of ten


class Code(anywidget.AnyWidget):
    """Python to read, and a button that copies it."""

    _esm = (_BROWSER / "code.js").read_text(encoding="utf-8")

    text = traitlets.Unicode("").tag(sync=True)


def code_of(settings: Settings, ran: Trace | None = None) -> str:
    """Python that gives what is shown and draws it, and opens the app at the same place.

    Args:
        settings: of the controls.
        ran: the run that is shown, which the code then repeats; None: what `settings` predict is simulated.
    """
    shown = _simulated(settings) if ran is None else _run(settings, ran)
    begin = {one.name: getattr(settings, one.name) for one in fields(settings)}
    changed = {name: value for name, value in begin.items() if value != getattr(Settings, name)}
    app = _call("ex.explore", *_named(**changed)).replace("\n", "\n# ")
    return "\n".join(["import explorer as ex", "", *shown, "", "# or the app, as it stands here:", f"# {app}"])


def _program(settings: Settings) -> list[str]:
    chunks = {} if settings.n_chunks is None else {"n_chunks": settings.n_chunks}
    sizes = {"n_ranks": settings.n_ranks, "n_micro_batches": settings.n_micro_batches, **chunks}
    options: dict[str, Any] = dict(settings.further())
    searched = {name: value for name, value in settings.searched() if name != "costs"}
    told = ["costs=costs", *_named(**searched)] if settings.searched() else []
    return [
        _call("program = ex.schedule", _text(settings.schedule), *_named(**sizes, **options), *told),
        *(f"program = ex.move(program, {_text(action)}, slot={slot})" for action, slot in settings.moves),
    ]


def _of_rank(settings: Settings) -> str:
    return _call("costs = ex.Costs.per_rank_share", *_costs(settings, settings.share().share, _ALWAYS))


def _simulated(settings: Settings) -> list[str]:
    lines = [_of_rank(settings), *_program(settings)]
    if settings.update and settings.program().has_backward:
        lines.append("program = ex.add_updates(program)")
    if settings.messages != "free":
        lines.append("program = ex.add_messages(program)")
    rule = [] if settings.messages == "free" else _named(messages=settings.messages)
    lines.append(_call("trace = ex.simulate", "program", "costs.for_program(program)", *rule))
    return [*lines, *_drawn(settings)]


def _drawn(settings: Settings) -> list[str]:
    """The figure that shows most of it: where bytes are known the memory too, against what the device has."""
    if not (settings.activation_bytes or settings.parameter_bytes):
        return ["ex.timeline(trace)"]
    device = _named(device_bytes=settings.limit) if settings.limit else []
    stack = _call("ex.memory_stack", "trace", *device)
    return [
        _call("ex.timeline_and_memory", "trace", *device),
        "",
        "# what the fullest rank holds memory for, or with rank=… another:",
        f"# {stack}",
    ]


def _run(settings: Settings, ran: Trace) -> list[str]:
    """The run that `ran` is of, again, beside what is predicted of its own medians."""
    program = [*([_of_rank(settings)] if settings.searched() else []), *_program(settings)]
    in_kernel = ran.clock == "virtual"
    further: dict[str, Any] = {"n_steps": settings.n_steps, "backend": "kernel" if in_kernel else "processes"}
    links, faults = _costs(settings, settings.links()) if in_kernel else [], _faults(ran)
    given = [
        *_named(**further),
        *([f"links=ex.Costs({', '.join(links)})"] if links else []),
        *([f"faults=[{', '.join(faults)}]"] if faults else []),
    ]
    if settings.model in READY_MODELS:
        sizes = ["n_stages=program.n_stages", f"n_micro_batches={settings.n_micro_batches}"]
        made = _call("model = ex.ready_model", _text(settings.model), *sizes)
        model = ["model.layers", "model.batch", "loss=model.loss", "optimizer=model.optimizer"]
    else:
        made, model = "# model, batch and loss as you gave them to the app", ["model", "batch", "loss=loss"]
    both = 'ex.compare(run.predicted, run.trace, names=["predicted", "measured"])'
    return [*program, made, _call("run = ex.execute", "program", *model, *given), both]


def _faults(ran: Trace) -> list[str]:
    found = []
    for text in dict.fromkeys(mark.text for mark in ran.marks):
        with contextlib.suppress(InputError):  # a mark may tell of something else
            found.append(f"ex.{parse_fault(text)!r}")
    return found


def _costs(settings: Settings, share: Costs, always: Collection[str] = ()) -> list[str]:
    """The arguments of `share` that are not the usual ones, or always told."""
    usual = Costs()
    shown: dict[str, Any] = {
        one.name: getattr(share, one.name)
        for one in fields(Costs)
        if one.name != "links" and (one.name in always or getattr(share, one.name) != getattr(usual, one.name))
    }
    nodes = f"links=ex.node_links({settings.n_ranks}, ranks_per_node={settings.ranks_per_node})"
    return [*_named(**shown), *([nodes] if settings.ranks_per_node else [])]


def _named(**values: Any) -> list[str]:
    return [f"{name}={_text(value)}" for name, value in values.items()]


def _call(function: str, *arguments: str) -> str:
    """On one line, or on one for each argument where that is too long."""
    line = f"{function}({', '.join(arguments)})"
    return line if len(line) <= _WIDEST else "\n".join([f"{function}(", *(f"    {one}," for one in arguments), ")"])


def _text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value == math.inf:
        return 'float("inf")'
    return _short(value) if isinstance(value, float) and abs(value) >= _MANY else repr(value)


def _short(value: float) -> str:
    """A large number as people write it, 80e9, where that is the same number."""
    power = 3 * int(math.log10(abs(value)) // 3)
    text = f"{value / 10**power:.12g}e{power}"
    return text if float(text) == value else repr(value)
