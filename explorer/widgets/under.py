"""Under the picture: pin its numbers, delay the action that is selected, edit the order."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from ipywidgets.widgets.widget_button import ButtonStyle

from explorer.core import Action, Trace
from explorer.errors import ExplorerError, InputError
from explorer.lowering import Edits
from explorer.widgets.around import Around
from explorer.widgets.controls import Controls
from explorer.widgets.editing import MOST_EDITED, Editing, consequence, move_before, move_by
from explorer.widgets.look import Look, show
from explorer.widgets.picture import Picture
from explorer.widgets.reference import Against
from explorer.widgets.what_if import WhatIf

_HOW = "Drag a bar along its rank, or select one and press Alt and ← or →. Ctrl Z undoes."


class Under(ipywidgets.VBox):  # type: ignore[misc]
    """The row of buttons under the picture, and what they say.

    Attributes:
        what_if: pins the numbers and delays the selected action.
        editing: the order that is shown.
        edit: lets bars be moved.
        undo: the last move.
        redo: the last that was undone.
        name: of the schedule that the edited order is saved as.
        save: it.
    """

    def __init__(
        self,
        controls: Controls,
        picture: Picture,
        act: Callable[[Callable[[], None]], None],
        redraw: Callable[[], bool],
        look: Look,
    ) -> None:
        self._app = Around(controls, picture, act, redraw)
        self.what_if = WhatIf(self._app, self.change, look)
        self.editing = Editing(controls.settings())
        self._tells_of_left = False
        self._to_say: str | None = None
        auto, style = ipywidgets.Layout(width="auto"), ButtonStyle()
        self.edit = ipywidgets.ToggleButton(description="Edit order", icon="arrows-h", layout=auto)
        self.undo = ipywidgets.Button(description="Undo", icon="undo", layout=auto, style=style)
        self.redo = ipywidgets.Button(description="Redo", icon="repeat", layout=auto, style=style)
        self.name = ipywidgets.Text(
            placeholder="name of a schedule", layout=ipywidgets.Layout(width="170px"), style=look.texts
        )
        self.save = ipywidgets.Button(description="Save as schedule", layout=auto, style=style)
        self._said, self._refused = look.text("pipeline-note"), look.text("pipeline-explanation")
        parts = [self.edit, self.undo, self.redo, self.name, self.save]
        row = ipywidgets.HBox([self.what_if.pin, *parts, self.what_if.delay], layout=look.plain)
        row.add_class("pipeline-row")
        super().__init__([row, self._refused, self._said], layout=look.plain)
        self.add_class("pipeline-under")
        self._watch()
        self._refresh()

    # ── what the app tells ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def setting(self) -> bool:
        """Whether several fields are being set at once, after which it predicts itself."""
        return self._app.setting

    @property
    def said(self) -> str:
        """The last sentence, as text."""
        return html.unescape(str(self._said.value))

    @property
    def refused(self) -> str:
        """Why the last move was none, as text; "" if it was one."""
        return html.unescape(str(self._refused.value))

    def change(self, name: str) -> None:
        """The field `name` was changed by the user; what there is to say of it waits for `tell`."""
        self.what_if.reference.change(name)
        if self.editing.strays(self._app.controls.settings()):
            left = self.editing.leave()
            self._tells_of_left = bool(left)
            self._to_say = left or self._how()
            self._app.controls.moves = ()
        elif not self._tells_of_left:  # which also holds while a slider moves on
            self._to_say = self._how()

    def tell(self) -> None:
        """Say what followed from the last change."""
        if self._to_say is not None:
            self._say(self._to_say)
            self._to_say = None
            self._refresh()

    def against(self, trace: Trace) -> Against | None:
        """What the numbers of `trace`, which is about to be shown, are to be compared with."""
        return self.what_if.reference.show(trace)

    def follow(self, trace: Trace) -> None:
        """`trace` is shown."""
        n_actions = trace.program.n_actions
        self.edit.disabled = n_actions > MOST_EDITED
        self.edit.tooltip = _HOW if n_actions <= MOST_EDITED else f"up to {MOST_EDITED} actions; here are more"
        if n_actions > MOST_EDITED and self.edit.value:
            self.edit.value = False

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
            self._refuse(str(error), where_tried=True)

    def _keep(self, edits: Edits, rank: int, words: str) -> None:
        """Show the order of these edits, if what it would do can be told.

        Raises:
            ExplorerError: if not, as where messages would hang; all stays as it is then.
        """
        controls, before = self._app.controls, self.what_if.reference.shown
        settings, kept = controls.settings(), controls.moves
        controls.moves = tuple((edit.action, edit.slot) for edit in edits.done)
        try:
            after = controls.settings().predict().trace
        except ExplorerError:
            controls.moves = kept
            raise
        self.editing.keep(settings, edits)
        self.what_if.reference.change("")
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
        self.what_if.reference.change("")
        self._app.controls.moves = self.editing.moves
        self._app.set_fields(left.fields)
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
        self._app.set_fields({"schedule": name, "options": ""})
        self._refresh()
        self.name.value = ""
        self._say(f"Saved: explorer.schedule({name!r}, …) gives this order, and it is in the list of schedules")

    # ── between them ────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        timeline, act = self._app.picture.timeline, self._app.act
        for button, then in ((self.undo, self._undo), (self.redo, self._redo), (self.save, self._save)):
            button.on_click(self._guarded(then))
        self.edit.observe(lambda _change: act(self._turn), "value")
        timeline.on_msg(lambda _widget, content, _buffers: act(lambda: self._asked(content)))

    def _guarded(self, then: Callable[[], None]) -> Callable[[Any], None]:
        """A callback whose refusals are said here, where they were caused."""

        def tried() -> None:
            try:
                then()
            except InputError as error:
                self._refuse(str(error))

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
        self.undo.description = "Undo" if editing.done or not editing.can_undo else "Back to the edited order"
        moves = {0: "", 1: ": 1 move"}.get(editing.done, f": {editing.done} moves")
        self.edit.description = f"Edit order{moves}"

    def _say(self, text: str) -> None:
        self._said.value, self._refused.value = html.escape(text), ""
        if text and text != _HOW:
            self._app.picture.timeline.send({"edited": text, "refused": False})

    def _refuse(self, text: str, *, where_tried: bool = False) -> None:
        """Why not; also in the picture, where a bar was let go."""
        self._said.value, self._refused.value = "", html.escape(text)
        self._app.picture.timeline.send({"edited": text, "refused": where_tried})
