"""`explorer.explore()`: the app, on the screen as soon as can be."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from explorer.errors import ExplorerError, InputError, shown
from explorer.schedules import schedule
from explorer.simulate import simulate

if TYPE_CHECKING:
    from explorer.widgets.explorer import Explorer

_OWN = ("batch", "loss", "optimizer", "split_points")


def explore(
    model: Any = None, *, run_on_change: bool | None = None, backend: str | None = None, **settings: Any
) -> Explorer:
    """The app: move a slider, see the predicted timeline and memory; press Run, see the real one.

    Args:
        model: name of a ready model ("mlp", "conv", "gpt"), or your own: layers or a model as `execute` takes it, then
            with `batch` and `loss`, and where wanted `optimizer` and `split_points`.
        run_on_change: whether a run begins by itself when model, schedule or a count changes; None: with a ready
            model, which is small.
        backend: where ranks of a run work, "kernel" or "processes"; None: in processes where each has a core.
        settings: where the controls begin: `schedule`, `n_ranks`, `n_chunks`, `n_micro_batches`, `n_steps`, `forward`
            and `latency` in seconds, `backward_ratio`, `bandwidth` in bytes per second, `message_bytes`; of a rank's
            share `activation_bytes` and `parameter_bytes`, and `memory_limit`, the bytes of its device.

    Raises:
        InputError: if a setting or a backend does not exist, or a model of your own comes without batch and loss.

    Example:
        >>> import explorer as ex
        >>> ex.explore(n_ranks=4, n_micro_batches=8, forward=1.0)
        Explorer(schedule='1f1b', n_ranks=4, n_chunks=1, n_micro_batches=8, makespan=33, bubble_ratio=0.2727)
    """
    from explorer.widgets.explorer import Explorer
    from explorer.widgets.opening import read_backend, read_own_model, read_settings

    own = read_own_model(model, {name: settings.pop(name) for name in _OWN if name in settings})
    begin = read_settings("own" if own else model, settings)
    if not isinstance(run_on_change, bool | None):
        raise InputError(
            f"run_on_change is True, False or None; got {shown(run_on_change)}; try False", argument="run_on_change"
        )
    on_change = own is None if run_on_change is None else run_on_change
    app = Explorer(begin, own, run_on_change=on_change, backend=read_backend(backend))
    _import_engine_later(app)
    return app


def _import_engine_later(app: Explorer) -> None:
    """Once the app can be seen: the first Run is then quick, and the first picture not held up."""

    def load(_change: Any = None) -> None:
        app.timeline.unobserve(load, "painted")
        threading.Thread(target=_import_engine, args=(app,), name="explorer-torch", daemon=True).start()

    app.timeline.observe(load, "painted")


def _import_engine(app: Explorer) -> None:
    simulate(schedule("1f1b", n_ranks=64, n_micro_batches=64)).summary()  # large enough to be worth compiled loops
    try:
        from explorer.execute import execute  # noqa: F401
    except ExplorerError:
        return  # Run will say so
    app.panel.where.prepare()
