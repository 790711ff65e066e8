"""All the controls, and the Settings they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipywidgets

from explorer.errors import InputError
from explorer.schedules import REGISTRY
from explorer.widgets.field import Field
from explorer.widgets.inputs import bandwidth, counter, dropdown, linear, logarithmic, text
from explorer.widgets.look import Look, show
from explorer.widgets.memory_controls import describe_memory, memory_inputs, read_memory
from explorer.widgets.settings import Settings

_MS = 1e3
_MB = 1e6
# where an error is shown, by the argument it names
_PLACE = {
    **{
        "n_stages": "n_ranks",
        "n_layers": "n_ranks",
        "backward": "backward_ratio",
        "warm_up": "schedule",
        "delays": "late_action",
        "optimizer_bytes": "optimizer_ratio",
        "weight_gradient_bytes": "kept_share",
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
        controls, more = _main_inputs(settings, models, look), _cost_inputs(settings, look)
        memory = memory_inputs(settings, look)
        self.fields = {name: Field(control, look) for name, control in {**controls, **more, **memory}.items()}
        self.moves = settings.moves
        self._models = models
        self._chunks_chosen = settings.n_chunks is not None
        self._following = False
        folds = [
            self._fold("More costs", "sliders", more, settings, look),
            self._fold("Memory", "database", memory, settings, look),
        ]
        buttons = ipywidgets.HBox([button for button, _ in folds], layout=look.plain)
        super().__init__([self._row(controls), buttons, *(row for _, row in folds)], layout=look.plain)
        self.fields["schedule"].control.observe(self._follow_schedule, "value")
        self.fields["n_chunks"].control.observe(self._note_chunks, "value")
        self.fields["forward"].say("of a rank's share, a micro-batch")
        self.fields["fixed"].say("of every action, besides")
        self.fields["weight_share"].say("where a schedule splits the backward into I and W")
        self.fields["overlap_share"].say("of an F begun together with a B; 1: as long as one by one")
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
            **read_memory(value),
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
        limited, in_bytes = math.isfinite(self.fields["bandwidth"].value), self._knows_bytes()
        self.fields["message_bytes"].say("of the prediction; a run knows its own" if limited or in_bytes else "")
        show(self.fields["message_bytes"], limited or in_bytes)
        for name, unchanged in (("slow_factor", 1.0), ("late", 0.0)):
            changed = self.fields[name].value != unchanged
            self.fields[name].say("of the prediction; for a run, add it under Faults" if changed else "")
        self._describe_nodes(ranks, limited)
        describe_memory(self.fields)

    def _knows_bytes(self) -> bool:
        """Whether any memory is known, and with it what lies in receive buffers."""
        return any(self.fields[name].value > 0 for name in ("activation_bytes", "parameter_bytes"))

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

    def _row(self, names: Iterable[str]) -> Any:
        """Fields side by side, as many as there is room for."""
        row = ipywidgets.HBox([self.fields[name] for name in names], layout=ipywidgets.Layout(flex_flow="row wrap"))
        row.add_class("pipeline-controls")
        return row

    def _fold(self, title: str, icon: str, names: Iterable[str], settings: Settings, look: Look) -> tuple[Any, Any]:
        """A button, and fields that are seen while it is pressed: from the beginning where they say anything."""
        row, usual = self._row(names), Settings()
        said = any(getattr(settings, name) != getattr(usual, name) for name in names)
        button = ipywidgets.ToggleButton(said, description=title, icon=icon, layout=look.plain)
        button.observe(lambda change: show(row, bool(change["new"])), "value")
        show(row, said)
        return button, row

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


def _main_inputs(settings: Settings, models: Mapping[str, str], look: Look) -> dict[str, Any]:
    """Name of a setting → its input: what most want to change."""
    chunks = settings.n_chunks or _chunks_of(settings.schedule)
    return {
        "model": dropdown("Model", _titles(models), settings.model, look),
        "schedule": dropdown("Schedule", _schedules(), settings.schedule, look),
        "options": text("Options", settings.options, look, "warm_up=6, dialect=torch"),
        "n_ranks": counter("Ranks", settings.n_ranks, 64, look),
        "n_chunks": counter("Chunks a rank", chunks, 8, look),
        "n_micro_batches": counter("Micro-batches", settings.n_micro_batches, 128, look),
        "n_steps": counter("Steps of a run", settings.n_steps, 20, look),
        "forward": logarithmic("Forward, ms", settings.forward * _MS, look),
        "backward_ratio": linear("Backward ÷ forward", settings.backward_ratio, 4.0, 0.1, look),
        "latency": linear("Latency, ms", settings.latency * _MS, 20.0, 0.5, look),
        "bandwidth": bandwidth(settings.bandwidth, look),
        "message_bytes": linear("Message, MB", settings.message_bytes / _MB, 64.0, 0.5, look),
    }


def _cost_inputs(settings: Settings, look: Look) -> dict[str, Any]:
    """Name of a setting → its input: further costs."""
    return {
        "warm_up": dropdown("Warm-up", _warm_ups(settings.warm_up), settings.warm_up, look),
        "weight_share": linear("W ÷ backward", settings.weight_share, 1.0, 0.05, look, digits=2),
        "overlap_share": linear("F with B ÷ both", settings.overlap_share, 1.0, 0.05, look, digits=2),
        "recompute": linear("Recompute ÷ F", settings.recompute, 1.0, 0.1, look),
        "recompute_for": dropdown("Recompute for", _RECOMPUTE, settings.recompute_for, look),
        "fixed": linear("Fixed, ms", settings.fixed * _MS, 5.0, 0.1, look),
        "jitter": linear("Jitter", settings.jitter, 0.5, 0.01, look, digits=2),
        "seed": counter("Seed", settings.seed, 99, look, least=0),
        "slow_rank": counter("Slow rank", settings.slow_rank, 63, look, least=0),
        "slow_factor": linear("Slow rank takes ×", settings.slow_factor, 4.0, 0.1, look, least=1.0),
        "long_micro_batch": counter("Long micro-batch", settings.long_micro_batch, 127, look, least=0),
        "long_factor": linear("Long one takes ×", settings.long_factor, 4.0, 0.1, look, least=1.0),
        "late_action": text("Late action", settings.late_action, look, "2F3"),
        "late": linear("Late by, ms", settings.late * _MS, 200.0, 1.0, look),
        "update": linear("Optimizer, ms", settings.update * _MS, 100.0, 1.0, look),
        "ranks_per_node": counter("Ranks a node", settings.ranks_per_node, 16, look, least=0),
        "sharing": dropdown("Links shared", _SHARING, settings.sharing, look),
        "messages": dropdown("Messages", _MESSAGES, settings.messages, look),
    }


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
