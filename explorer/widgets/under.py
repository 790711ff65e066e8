"""Under the picture: pin its numbers, delay the action that is selected, edit the order."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ipywidgets

from explorer.core import Action, Trace
from explorer.errors import ExplorerError, InputError
from explorer.figures.units import time_unit
from explorer.lowering import Edits
from explorer.widgets.controls import Controls
from explorer.widgets.editing import MOST_EDITED, Editing, consequence, move_before, move_by
from explorer.widgets.look import Look, show
from explorer.widgets.picture import Picture
from explorer.widgets.reference import Against, Reference

_MS = 1e3
_HOW = "Drag a bar along its rank, or select one and press Alt and ← or →. Ctrl Z undoes."


class Around(NamedTuple):
    """What this needs of the app around it.

    Attributes:
        controls: the fields.
        picture: what is drawn.
        act: calls what it is given, under the app's lock, and shows what that raises.
        redraw: predicts from the controls anew.
    """

    controls: Controls
    picture: Picture
    act: Callable[[Callable[[], None]], None]
    redraw: Callable[[], bool]


class Under(ipywidgets.VBox):  # type: ignore[misc]
    """The row of buttons under the picture, and what they say.

    Attributes:
        pin: keeps the numbers shown to compare with.
        edit: lets bars be moved.
        undo: the last move.
        redo: the last that was undone.
        delay: ms that the selected action takes besides.
        name: of the schedule that the edited order is saved as.
        save: it.
    """

    def __init__(self, app: Around, look: Look) -> None:
        self._app, self._look = app, look
        self._reference = Reference()
        self.editing = Editing(app.controls.settings())
        self._chosen: Action | None = None
        self._setting = False
        self._tells_of_left = False
        auto = ipywidgets.Layout(width="auto")
        self.pin = ipywidgets.ToggleButton(description="Pin these numbers", icon="thumb-tack", layout=auto)
        self.edit = ipywidgets.ToggleButton(description="Edit order", icon="arrows-h", layout=auto)
        self.undo = ipywidgets.Button(description="Undo", icon="undo", layout=auto)
        self.redo = ipywidgets.Button(description="Redo", icon="repeat", layout=auto)
        self.name = ipywidgets.Text(placeholder="name of a schedule", layout=ipywidgets.Layout(width="170px"))
        self.save = ipywidgets.Button(description="Save as schedule", layout=auto)
        self._delay_label = look.text("pipeline-note")
        self.delay = ipywidgets.BoundedFloatText(
            0.0, min=0.0, max=1e6, step=1.0, layout=ipywidgets.Layout(width="90px")
        )
        self._delay_row = ipywidgets.HBox([self._delay_label, self.delay], layout=look.plain)
        self._said, self._refused = look.text("pipeline-note"), look.text("pipeline-explanation")
        parts = [self.pin, self.edit, self.undo, self.redo, self.name, self.save, self._delay_row]
        row = ipywidgets.HBox(parts, layout=look.plain)
        row.add_class("pipeline-row")
        super().__init__([row, self._refused, self._said], layout=look.plain)
        self.add_class("pipeline-under")
        self._watch()
        self._refresh()

    # ── what the app tells ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def setting(self) -> bool:
        """Whether several fields are being set at once, after which it predicts itself."""
        return self._setting

    @property
    def said(self) -> str:
        """The last sentence, as text."""
        return html.unescape(str(self._said.value))

    @property
    def refused(self) -> str:
        """Why the last move was none, as text; "" if it was one."""
        return html.unescape(str(self._refused.value))

    def change(self, name: str) -> None:
        """The field `name` was changed by the user."""
        self._reference.change(name)
        if self.editing.strays(self._app.controls.settings()):
            left = self.editing.leave()
            self._tells_of_left = bool(left)
            self._say(left or self._how())
            self._app.controls.moves = ()
            self._refresh()
        elif not self._tells_of_left:  # which also holds while a slider moves on
            self._say(self._how())

    def follow(self, trace: Trace) -> Against | None:
        """`trace` is predicted and about to be shown; what its numbers are to be compared with."""
        against = self._reference.show(trace)
        n_actions = trace.program.n_actions
        self.edit.disabled = n_actions > MOST_EDITED
        self.edit.tooltip = _HOW if n_actions <= MOST_EDITED else f"up to {MOST_EDITED} actions; here are {n_actions:,}"
        if n_actions > MOST_EDITED and self.edit.value:
            self.edit.value = False
        return against

    # ── the order ───────────────────────────────────────────────────────────────────────────────────────────────

    def move(self, action: Action, *, before: Action | None = None, by: int = 0) -> None:
        """Move an action in front of another, to the end of its rank (None), or by so many slots."""
        edits = self.editing.edits(self._app.controls.settings())
        try:
            moved = move_by(edits, action, by) if by else move_before(edits, action, before)
            if moved is edits:
                self._say(f"{action} stands there already")
            else:
                self._keep(moved, moved.done[-1].rank, moved.done[-1].words)
        except ExplorerError as error:
            self._say(str(error), refused=True)

    def _keep(self, edits: Edits, rank: int, words: str) -> None:
        """Show the order of these edits, if what it would do can be told.

        Raises:
            ExplorerError: if not, as where messages would hang; all stays as it is then.
        """
        controls, before = self._app.controls, self._reference.shown
        settings, kept = controls.settings(), controls.moves
        controls.moves = tuple((edit.action, edit.slot) for edit in edits.done)
        try:
            after = controls.settings().predict().trace
        except ExplorerError:
            controls.moves = kept
            raise
        self.editing.keep(settings, edits)
        self._reference.change("")
        self._tells_of_left = False
        self._refresh()
        self._app.redraw()
        self._say(f"{words}: {consequence(before, after, rank)}" if before else words)

    def _undo(self) -> None:
        settings = self._app.controls.settings()
        if not self.editing.done:
            self._go_back()
            return
        edits = self.editing.edits(settings)
        self._keep(edits.undo(), edits.done[-1].rank, f"Undone: {edits.done[-1].words}")

    def _redo(self) -> None:
        edits = self.editing.edits(self._app.controls.settings()).redo()
        self._keep(edits, edits.done[-1].rank, edits.done[-1].words)

    def _go_back(self) -> None:
        """Show the edited order again that was left last."""
        left = self.editing.back()
        self._reference.change("")
        self._app.controls.moves = self.editing.moves
        self._set(left.fields)
        self._tells_of_left = False
        self._refresh()
        n_moves = len(left.edits.done)
        self._say(
            f"Back at the edited order: {left.edits.done[-1].words}"
            + (f", {n_moves} moves in all" if n_moves > 1 else "")
        )

    def _save(self) -> None:
        controls = self._app.controls
        name = self.editing.save(self.name.value)
        self.editing.leave()  # Undo goes on from there
        controls.moves = ()
        controls.list_schedules()
        self._set({"schedule": name, "options": ""})
        self._refresh()
        self.name.value = ""
        self._say(f"Saved: explorer.schedule({name!r}, …) gives this order, and it is in the list of schedules")

    # ── what if ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _choose(self) -> None:
        """Offer to delay the action that is selected."""
        self._chosen = self._app.picture.selected_action()
        fields = self._app.controls.fields
        late = fields["late"].value if str(self._chosen) == fields["late_action"].value.strip() else 0.0
        self._delay_label.value = f"Delay {self._chosen} by, ms" if self._chosen else ""
        show(self._delay_row, self._chosen is not None)
        self._setting = True  # showing what is, is no wish
        try:
            self.delay.value = late
        finally:
            self._setting = False

    def _delay(self) -> None:
        if self._setting or self._chosen is None:
            return
        self.change(f"delay of {self._chosen}")
        slider = self._app.controls.fields["late"].control
        slider.max = max(slider.max, self.delay.value)
        self._set({"late_action": str(self._chosen), "late": self.delay.value})

    def _pin(self) -> None:
        self._reference.pin(self.pin.value)
        trace = self._reference.pinned
        self.pin.description = "Pin these numbers"
        if trace is not None:
            self.pin.description = f"Pinned: {time_unit(trace.makespan, 'wall').show(trace.makespan)}"
        if not self._app.picture.timeline.measured:  # a run stays in the picture
            self._app.redraw()

    # ── between them ────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        timeline, act = self._app.picture.timeline, self._app.act
        for button, then in ((self.undo, self._undo), (self.redo, self._redo), (self.save, self._save)):
            button.on_click(self._guarded(then))
        self.pin.observe(lambda _change: act(self._pin), "value")
        self.edit.observe(lambda _change: act(self._turn), "value")
        self.delay.observe(lambda _change: act(self._delay), "value")
        timeline.observe(lambda _change: act(self._choose), "selected")
        timeline.on_msg(lambda _widget, content, _buffers: act(lambda: self._asked(content)))

    def _guarded(self, then: Callable[[], None]) -> Callable[[Any], None]:
        """A callback whose refusals are said here, where they were caused."""

        def tried() -> None:
            try:
                then()
            except InputError as error:
                self._say(str(error), refused=True)

        return lambda _button: self._app.act(tried)

    def _asked(self, content: Mapping[str, Any]) -> None:
        """What the browser asks for with hand or keys."""
        if "undo" in content:
            self._guarded(self._undo)(None)
        elif "redo" in content:
            self._guarded(self._redo)(None)
        elif "move" in content:
            self._guarded(lambda: self._moved(content["move"]))(None)

    def _moved(self, wish: Mapping[str, Any]) -> None:
        """Move a bar: `row` in the columns `of` frame `seq`, in front of the bar at `before` or `by` so many slots."""
        at, of, seq = self._app.picture.action_at, wish["of"], wish["seq"]
        other = wish.get("before")
        self.move(
            at(of, wish["row"], seq), before=None if other is None else at(of, other, seq), by=int(wish.get("by", 0))
        )

    def _turn(self) -> None:
        """Let bars be moved, or no longer."""
        self._app.picture.timeline.editing = self.edit.value
        self._refresh()
        self._say(self._how())

    def _how(self) -> str:
        return _HOW if self.edit.value else ""

    def _refresh(self) -> None:
        editing, on = self.editing, self.edit.value
        for button, possible in ((self.undo, editing.can_undo), (self.redo, editing.can_redo)):
            button.disabled = not possible
            show(button, on or editing.can_undo or editing.can_redo)
        for part in (self.name, self.save):
            show(part, bool(editing.done))
        show(self._delay_row, self._chosen is not None)
        moves = {0: "", 1: ": 1 move"}.get(editing.done, f": {editing.done} moves")
        self.edit.description = f"Edit order{moves}"

    def _say(self, text: str, *, refused: bool = False) -> None:
        self._said.value, self._refused.value = ("", html.escape(text)) if refused else (html.escape(text), "")
        if text and text != _HOW:
            self._app.picture.timeline.send({"edited": text, "refused": refused})

    def _set(self, values: Mapping[str, Any]) -> None:
        """Set fields, and predict once."""
        controls = self._app.controls
        self._setting = True
        try:
            for name, value in values.items():
                controls.fields[name].control.value = value
        finally:
            self._setting = False
        controls.describe()
        self._app.redraw()
