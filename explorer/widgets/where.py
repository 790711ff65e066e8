"""Where the ranks of a run work: all in this kernel, or each in a process of its own."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets

from explorer.errors import ExplorerError
from explorer.execute.cores import n_cores
from explorer.widgets.look import Look

KERNEL, PROCESSES = "kernel", "processes"
_OPTIONS = [("in this kernel", KERNEL), ("in processes", PROCESSES)]


class Where(ipywidgets.HBox):  # type: ignore[misc]
    """The choice, and what follows from it; until somebody chooses, processes need a core for each rank.

    Attributes:
        control: the list.
    """

    def __init__(self, look: Look, *, chosen: str | None) -> None:
        self.control = ipywidgets.Dropdown(
            options=_OPTIONS,
            value=chosen or KERNEL,
            description="Ranks run",
            layout=ipywidgets.Layout(width="240px"),
            style={"description_width": "76px"},
        )
        self._is_chosen = chosen is not None
        self._following = False
        self._n_ranks = 1
        self._n_cores = n_cores()
        self._note = look.text("pipeline-note")
        super().__init__([self.control], layout=look.plain)
        self.control.observe(self._choose, "value")

    @property
    def note(self) -> Any:
        """The widget that says what there are too few cores for."""
        return self._note

    @property
    def backend(self) -> str:
        """As `execute` takes it."""
        return str(self.control.value)

    @property
    def following(self) -> bool:
        """Whether the choice is being made by itself."""
        return self._following

    def follow(self, n_ranks: int) -> None:
        """Choose for so many ranks, unless somebody has chosen, and say what is to be known."""
        self._n_ranks = n_ranks
        if not self._is_chosen:
            self._following = True
            try:
                self.control.value = PROCESSES if n_ranks <= self._n_cores else KERNEL
            finally:
                self._following = False
        said = contention(n_ranks, self._n_cores, self.backend)
        if self._note.value != said:
            self._note.value = said

    def prepare(self) -> None:
        """Have processes wait for the first run, in the background, if that is where ranks are to work."""
        if self.backend == PROCESSES:
            threading.Thread(target=_prepare, args=(self._n_ranks,), name="explorer-processes", daemon=True).start()

    def _choose(self, _change: Any) -> None:
        if not self._following:
            self._is_chosen = True
            self.follow(self._n_ranks)
            self.prepare()


def contention(n_ranks: int, cores: int, backend: str) -> str:
    """What fewer cores than ranks mean for a run, in a sentence; "" where there are enough."""
    if cores >= n_ranks:
        return ""
    few = f"{cores} core{'s' if cores > 1 else ''} for {n_ranks} ranks"
    if backend == KERNEL:
        return f"{few}: they run in this kernel, on virtual clocks; in processes they would wait for each other's cores"
    return f"{few}: in processes they wait for each other's cores, so that times are longer than a core each would need"


def _prepare(n_ranks: int) -> None:
    try:
        from explorer.execute.keeper import prepare

        prepare(n_ranks)
    except ExplorerError:
        return  # Run will say so
