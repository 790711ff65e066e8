"""What a run of the app trains: a ready model, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.core import Program
from explorer.execute import READY_MODELS
from explorer.widgets.settings import Prediction, Settings
from explorer.widgets.where import KERNEL

if TYPE_CHECKING:
    from explorer.execute import Fault, Run

OWN = "own"


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A model that the user brought.

    Attributes:
        model: layers, or a model to cut.
        batch: inputs and targets.
        loss: of outputs and targets.
        optimizer: parameters → optimizer, or None.
        split_points: where to cut, or None.
    """

    model: Any
    batch: Any
    loss: Any
    optimizer: Any = None
    split_points: Any = None

    @property
    def title(self) -> str:
        """How it is called in the list of models."""
        return f"yours: {type(self.model).__name__}"


def title(name: str, own: OwnModel | None) -> str:
    """What the model of this name is called in a sentence."""
    return titles(own)[name].split(":")[0] if name != OWN else "your model"


def titles(own: OwnModel | None) -> dict[str, str]:
    """Name → title of what can be run."""
    return {OWN: own.title, **READY_MODELS} if own else dict(READY_MODELS)


def check_runs(program: Program) -> None:
    """Refuse a program that no backend runs; torch is imported here and not before.

    Raises:
        ProgramError: with the reason.
        MissingError: if torch is not installed.
    """
    from explorer.execute import execute  # noqa: F401  says in a sentence that torch is missing
    from explorer.execute.checks import check_program

    check_program(program)


def starter(
    settings: Settings, prediction: Prediction, own: OwnModel | None, backend: str, faults: Sequence[Fault] = ()
) -> Callable[[list[Any]], Run]:
    """What runs the model of `settings` when given its hooks; torch is imported there and not before."""

    def start(hooks: list[Any]) -> Run:
        from explorer.execute import execute, ready_model

        program = prediction.program
        links = settings.links() if backend == KERNEL else None  # between processes they are the machine's own
        common: dict[str, Any] = {"n_steps": settings.n_steps, "links": links, "hooks": hooks, "backend": backend}
        common["faults"] = list(faults)
        if settings.model == OWN and own is not None:
            given = {"optimizer": own.optimizer, "split_points": own.split_points}
            return execute(program, own.model, own.batch, loss=own.loss, **given, **common)
        ready = ready_model(settings.model, n_stages=program.n_stages, n_micro_batches=program.n_micro_batches)
        return execute(program, ready.layers, ready.batch, loss=ready.loss, optimizer=ready.optimizer, **common)

    return start
