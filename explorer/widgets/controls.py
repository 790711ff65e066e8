"""All the controls, and the Settings they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from explorer.errors import InputError
from explorer.schedules import REGISTRY
from explorer.widgets.field import Field
from explorer.widgets.look import Look, show
from explorer.widgets.settings import Settings

_MS = 1e3
_GB = 1e9
_MB = 1e6
_BANDWIDTHS = (math.inf, *(float(gb) * _GB for gb in (400, 200, 100, 50, 25, 10, 5, 2, 1, 0.5, 0.1)))
# where an error is shown, by the argument it names
_PLACE = {
    **{
        "n_stages": "n_ranks",
        "n_layers": "n_ranks",
        "backward": "backward_ratio",
        "warm_up": "schedule",
        "delays": "late_action",
    },
    **dict.fromkeys(("layers", "split_points", "batch", "inputs", "targets", "loss", "optimizer"), "model"),
}
_LABELS = {"n_micro_batches": "Micro-batches", "n_ranks": "Ranks", "n_chunks": "Chunks a rank"}
_MESSAGES = [
    ("free: on their way once sent", "free"),
    ("buffered", "buffered"),
    ("one stream each way", "two_streams"),
    ("one ordered stream", "ordered"),
    ("rendezvous", "rendezvous"),
    ("coalesced groups", "coalesced"),
]
_SHARING = [("fairly: equal parts", "fair"), ("one after the other", "queue")]
_RECOMPUTE = [("inputs: B or I", "inputs"), ("both: I and W each", "both")]
_AS_THEY_ARE = (
    *("weight_share", "overlap_share", "recompute", "recompute_for"),
    *("jitter", "seed", "slow_rank", "slow_factor", "late_action", "messages", "long_micro_batch", "long_factor"),
    *("ranks_per_node", "sharing"),
)
_RERUNS = ("model", "schedule", "options", "warm_up", "n_ranks", "n_chunks", "n_micro_batches")


class Controls(ipywidgets.VBox):  # type: ignore[misc]
    """The fields by name; they wrap to as many columns as there is room for.

    Attributes:
        fields: by name of the setting.
        moves: of actions, as in Settings: what was edited by hand, which no field shows.
    """

    def __init__(self, settings: Settings, models: Mapping[str, str], look: Look) -> None:
        chunks = settings.n_chunks or _chunks_of(settings.schedule)
        controls = {
            "model": _dropdown("Model", _titles(models), settings.model, look),
            "schedule": _dropdown("Schedule", _schedules(), settings.schedule, look),
            "options": _text("Options", settings.options, look, "warm_up=6, dialect=torch"),
            "n_ranks": _counter("Ranks", settings.n_ranks, 64, look),
            "n_chunks": _counter("Chunks a rank", chunks, 8, look),
            "n_micro_batches": _counter("Micro-batches", settings.n_micro_batches, 128, look),
            "n_steps": _counter("Steps of a run", settings.n_steps, 20, look),
            "forward": _logarithmic("Forward, ms", settings.forward * _MS, look),
            "backward_ratio": _linear("Backward ÷ forward", settings.backward_ratio, 4.0, 0.1, look),
            "latency": _linear("Latency, ms", settings.latency * _MS, 20.0, 0.5, look),
            "bandwidth": _bandwidth(settings.bandwidth, look),
            "message_bytes": _linear("Message, MB", settings.message_bytes / _MB, 64.0, 0.5, look),
        }
        more = {
            "warm_up": _dropdown("Warm-up", _warm_ups(settings.warm_up), settings.warm_up, look),
            "weight_share": _linear("W ÷ backward", settings.weight_share, 1.0, 0.05, look, digits=2),
            "overlap_share": _linear("F with B ÷ both", settings.overlap_share, 1.0, 0.05, look, digits=2),
            "recompute": _linear("Recompute ÷ F", settings.recompute, 1.0, 0.1, look),
            "recompute_for": _dropdown("Recompute for", _RECOMPUTE, settings.recompute_for, look),
            "fixed": _linear("Fixed, ms", settings.fixed * _MS, 5.0, 0.1, look),
            "jitter": _linear("Jitter", settings.jitter, 0.5, 0.01, look, digits=2),
            "seed": _counter("Seed", settings.seed, 99, look, least=0),
            "slow_rank": _counter("Slow rank", settings.slow_rank, 63, look, least=0),
            "slow_factor": _linear("Slow rank takes ×", settings.slow_factor, 4.0, 0.1, look, least=1.0),
            "long_micro_batch": _counter("Long micro-batch", settings.long_micro_batch, 127, look, least=0),
            "long_factor": _linear("Long one takes ×", settings.long_factor, 4.0, 0.1, look, least=1.0),
            "late_action": _text("Late action", settings.late_action, look, "2F3"),
            "late": _linear("Late by, ms", settings.late * _MS, 200.0, 1.0, look),
            "update": _linear("Optimizer, ms", settings.update * _MS, 100.0, 1.0, look),
            "ranks_per_node": _counter("Ranks a node", settings.ranks_per_node, 16, look, least=0),
            "sharing": _dropdown("Links shared", _SHARING, settings.sharing, look),
            "messages": _dropdown("Messages", _MESSAGES, settings.messages, look),
        }
        self.fields = {name: Field(control, look) for name, control in {**controls, **more}.items()}
        self.moves = settings.moves
        self._models = models
        self._chunks_chosen = settings.n_chunks is not None
        self._following = False
        unfold = ipywidgets.ToggleButton(description="More costs", icon="sliders", layout=look.plain)
        unfold.observe(self._unfold, "value")
        wrapped = ipywidgets.Layout(flex_flow="row wrap")
        rows = [ipywidgets.HBox([self.fields[name] for name in names], layout=wrapped) for names in (controls, more)]
        for row in rows:
            row.add_class("pipeline-controls")
        self._more = rows[1]
        super().__init__([rows[0], unfold, rows[1]], layout=look.plain)
        self._show_more(any(getattr(settings, name) != getattr(Settings(), name) for name in more))
        self.fields["schedule"].control.observe(self._follow_schedule, "value")
        self.fields["n_chunks"].control.observe(self._note_chunks, "value")
        self.fields["forward"].say("of a rank's share, a micro-batch")
        self.fields["update"].say("of a rank, once a step, behind the makespan; a run measures its own")
        self.describe()

    def settings(self) -> Settings:
        """What the controls say now."""
        value = {name: field.value for name, field in self.fields.items()}
        return Settings(
            **{name: value[name] for name in (*_RERUNS, "n_steps", "backward_ratio", "bandwidth")},
            forward=value["forward"] / _MS,
            latency=value["latency"] / _MS,
            message_bytes=value["message_bytes"] * _MB,
            fixed=value["fixed"] / _MS,
            late=value["late"] / _MS,
            update=value["update"] / _MS,
            **{name: value[name] for name in _AS_THEY_ARE},
            moves=self.moves,
        )

    def list_schedules(self) -> None:
        """Offer what is registered now; what is chosen stays chosen."""
        control = self.fields["schedule"].control
        chosen = control.value
        with control.hold_trait_notifications():
            control.options = _schedules()
            control.value = chosen

    def go_to(self, values: Mapping[str, Any]) -> None:
        """Set several fields at once; nobody is told of each."""
        self._following = True
        try:
            for name, value in values.items():
                control = self.fields[name].control
                if getattr(control, "max", value) < value:
                    control.max = value
                control.value = value
        finally:
            self._following = False
        self._chunks_chosen = self.fields["n_chunks"].value != _chunks_of(self.fields["schedule"].value)

    def on_change(self, react: Callable[[str], None]) -> None:
        """Call `react` with the name of each field that changes."""
        for name, field in self.fields.items():
            field.control.observe(_named(react, name), "value")

    @property
    def following(self) -> bool:
        """Whether fields are just being set to suit others, which will tell of themselves."""
        return self._following

    def describe(self) -> None:
        """What model and schedule are, the stages there are, and what bandwidth and message do to each other."""
        ranks, chunks = self.fields["n_ranks"].value, self.fields["n_chunks"].value
        self.fields["model"].say(self._models[self.fields["model"].value].partition(": ")[2])
        word = "chunk" if chunks == 1 else "chunks"
        self.fields["n_chunks"].say(f"Stages: {ranks} ranks × {chunks} {word} = {ranks * chunks}")
        self.fields["schedule"].say(plain(f"Exists for {REGISTRY[self.fields['schedule'].value].needs}"))
        few = self.fields["n_micro_batches"].value < ranks * chunks
        self.fields["n_micro_batches"].say(f"fewer than the {ranks * chunks} stages: much idle time" if few else "")
        options = [name for name in REGISTRY[self.fields["schedule"].value].options if name != "costs"]  # not typed
        self.fields["options"].say(f"{', '.join(options)}; name=value, with commas" if options else "")
        show(self.fields["options"], bool(options))
        show(self.fields["warm_up"], "warm_up" in options)
        limited = math.isfinite(self.fields["bandwidth"].value)
        self.fields["message_bytes"].say("of the prediction; a run knows its own" if limited else "")
        show(self.fields["message_bytes"], limited)
        for name, unchanged in (("slow_factor", 1.0), ("late", 0.0)):
            changed = self.fields[name].value != unchanged
            self.fields[name].say("of the prediction; for a run, add it under Faults" if changed else "")
        self._describe_nodes(ranks, limited)

    def _describe_nodes(self, n_ranks: int, limited: bool) -> None:
        """Who shares which link, and whether that matters."""
        a_node = self.fields["ranks_per_node"].value
        n_nodes = -(-n_ranks // a_node) if a_node else 0
        if not a_node:
            said = "0: no message hinders another"
        elif n_nodes == 1:
            said = "one node: nothing passes between nodes"
        elif not limited:
            said = "nothing to share: choose a Bandwidth"
        else:
            said = f"{n_nodes} nodes, each with one way out and one way in for messages between them"
        self.fields["ranks_per_node"].say(said)
        show(self.fields["sharing"], n_nodes > 1 and limited)

    def explain(self, error: InputError) -> bool:
        """Show `error` under the control at fault; whether there is one."""
        named = _PLACE.get(error.argument, error.argument)
        options = REGISTRY[self.fields["schedule"].value].options
        if error.argument in options or (named not in self.fields and self.fields["options"].value.strip()):
            named = "options"
        field = self.fields.get(named)
        if field is not None:
            field.explain(plain(str(error)), error.legal if error.argument in self.fields else ())
        return field is not None

    def clear(self) -> None:
        """Nothing is wrong anywhere."""
        for field in self.fields.values():
            field.clear()

    def _unfold(self, change: Any) -> None:
        self._show_more(bool(change["new"]))

    def _show_more(self, visible: bool) -> None:
        show(self._more, visible)

    def _follow_schedule(self, change: Any) -> None:
        """Give the schedule as many chunks as it is made for, unless the user has chosen a number."""
        if not self._chunks_chosen and not self._following:
            self._following = True
            try:
                self.fields["n_chunks"].control.value = _chunks_of(change["new"])
            finally:
                self._following = False

    def _note_chunks(self, change: Any) -> None:
        if not self._following:
            self._chunks_chosen = change["new"] != _chunks_of(self.fields["schedule"].value)


def plain(text: str) -> str:
    """Names of arguments as the labels of their fields."""
    for name, label in _LABELS.items():
        text = text.replace(name, label)
    return text


def reruns(name: str) -> bool:
    """Whether a run is another one when the field `name` changes."""
    return name in _RERUNS


def _named(react: Callable[[str], None], name: str) -> Callable[[Any], None]:
    def observer(_change: Any) -> None:
        react(name)

    return observer


def _chunks_of(name: str) -> int:
    return REGISTRY[name].n_chunks


def _titles(models: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(title.partition(": ")[0], name) for name, title in models.items()]


def _schedules() -> list[tuple[str, str]]:
    return [(recipe.title, name) for name, recipe in REGISTRY.items()]


def _warm_ups(value: int) -> list[tuple[str, int]]:
    """What each rank may have more forwards first than the rank behind it."""
    known = {0: "0: one micro-batch at a time", 1: "1 more a rank: 1F1B", 2: "2 more a rank: eager"}
    most = max(6, value)
    counts = [(known.get(count, f"{count} more a rank"), count) for count in range(most + 1)]
    return [("as the schedule has it", -1), *counts]


def _dropdown(label: str, options: list[tuple[str, Any]], value: Any, look: Look) -> Any:
    return ipywidgets.Dropdown(options=options, value=value, description=label, style=look.lists, layout=look.wide)


def _counter(label: str, value: int, most: int, look: Look, *, least: int = 1) -> Any:
    return ipywidgets.IntSlider(value, least, max(most, value), description=label, style=look.sliders, layout=look.wide)


def _text(label: str, value: str, look: Look, example: str) -> Any:
    shown = {"placeholder": f"like {example}", "continuous_update": False}
    return ipywidgets.Text(value, description=label, style=look.texts, layout=look.wide, **shown)


def _linear(
    label: str, value: float, most: float, step: float, look: Look, *, digits: int = 1, least: float = 0.0
) -> Any:
    limits = {"min": least, "max": max(most, value), "step": step, "readout_format": f".{digits}f"}
    return ipywidgets.FloatSlider(value, **limits, description=label, style=look.sliders, layout=look.wide)


def _logarithmic(label: str, value: float, look: Look) -> Any:
    highest = max(3.0, math.ceil(math.log10(value)))
    limits = {"base": 10, "min": -1, "max": highest, "step": 0.05, "readout_format": ".4g"}
    return ipywidgets.FloatLogSlider(value, **limits, description=label, style=look.sliders, layout=look.wide)


def _bandwidth(value: float, look: Look) -> Any:
    values = sorted({*_BANDWIDTHS, value}, reverse=True)
    options = [("unlimited" if math.isinf(one) else f"{one / _GB:g} GB/s", one) for one in values]
    return ipywidgets.SelectionSlider(
        options=options, value=value, description="Bandwidth", style=look.sliders, layout=look.wide
    )
