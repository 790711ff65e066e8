"""Listening to somebody else's pipeline schedule: what its stages do and what they send, without changing what is done.

The methods of the schedule's own stage objects are covered by ones that note the time before and after; messages are
followed from the moment they are posted until they have been waited for. Torch 2.13's 1F1B tells of nothing itself.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from explorer.core import Kind
from explorer.errors import EngineError

_SCHEDULES = "torch.distributed.pipelining.schedules"
_MESSAGES = (
    ("get_fwd_recv_ops", Kind.RECV_F),
    ("get_fwd_send_ops", Kind.SEND_F),
    ("get_bwd_recv_ops", Kind.RECV_B),
    ("get_bwd_send_ops", Kind.SEND_B),
)
_WORK = ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk", "perform_reduce_grad")

KindOf = Callable[[tuple[Any, ...], dict[str, Any]], Kind]  # of the arguments a method is called with
Stamp = Any  # what a clock gives: nanoseconds, or an event on a device that becomes nanoseconds later


class Done(NamedTuple):
    """An action that has run."""

    kind: Kind
    stage: int
    micro_batch: int
    start: Stamp
    end: Stamp


class Parcel:
    """A message as one end sees it; what has not happened yet is None."""

    __slots__ = ("bytes", "got", "kind", "micro_batch", "peer", "posted", "stage", "wanted")

    def __init__(self, kind: Kind, stage: int, micro_batch: int, peer: int, size: int, posted: Stamp) -> None:
        self.kind, self.stage, self.micro_batch, self.peer, self.bytes = kind, stage, micro_batch, peer, size
        self.posted = posted
        self.wanted: Stamp | None = None
        self.got: Stamp | None = None


class Listener(Protocol):
    """Who is told."""

    def now(self) -> Stamp:
        """The time, at once."""

    def began(self, kind: Kind, stage: Any, micro_batch: int) -> contextlib.AbstractContextManager[Any]:
        """An action begins; what is given is open while it runs."""

    def did(self, done: Done, stage: Any) -> None:
        """An action has run."""

    def loss_ended(self, stage: int, micro_batch: int, end: Stamp) -> None:
        """The loss that belongs to a forward has been worked out."""

    def posted(self, parcel: Parcel) -> None:
        """A message has been given to the transport."""

    def stepped(self, step: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run `step`, a whole step of the schedule."""


class Taps:
    """Covers the methods of one schedule and its stages while it is open; afterwards all is as it was.

    Args:
        schedule: of torch.distributed.pipelining.
        stages: its stages on this rank.
        listener: who is told.
    """

    def __init__(self, schedule: Any, stages: Sequence[Any], listener: Listener) -> None:
        self._schedule, self._stages, self._listener = schedule, stages, listener
        self._module: Any = importlib.import_module(_SCHEDULES)
        self._open = False
        self._mark = f"_explorer_{id(self)}"

    def check(self) -> None:
        """Refuse a torch that has no such methods.

        Raises:
            EngineError: naming what is missing.
        """
        wanted = [(self._schedule, ("step", "_maybe_compute_loss")), (self._module, ("_batch_p2p",))]
        wanted += [(stage, (*_WORK, *(name for name, _ in _MESSAGES))) for stage in self._stages]
        missing = [name for thing, names in wanted for name in names if not hasattr(thing, name)]
        if missing:
            raise EngineError(
                f"recording listens to torch's pipeline schedules at {', '.join(missing[:4])}; this torch has none; "
                'try pip install "torch>=2.12"'
            )

    @contextlib.contextmanager
    def listening(self) -> Any:
        """Within it, the listener is told."""
        self._open = True
        with contextlib.ExitStack() as covers:
            covers.callback(self._close)
            cover = self._cover
            covers.callback(cover(self._module, "_batch_p2p", self._post))
            covers.callback(cover(self._schedule, "_maybe_compute_loss", self._loss))
            for stage in self._stages:
                covers.callback(cover(stage, "forward_one_chunk", self._work(stage, _always(Kind.F))))
                covers.callback(cover(stage, "backward_one_chunk", self._work(stage, _kind_of_backward)))
                covers.callback(cover(stage, "backward_weight_one_chunk", self._work(stage, _always(Kind.W))))
                covers.callback(cover(stage, "perform_reduce_grad", self._work(stage, _always(Kind.G))))
                for name, kind in _MESSAGES:
                    covers.callback(cover(stage, name, self._named(stage, kind)))
            covers.callback(cover(self._schedule, "step", self._step))
            yield

    def _close(self) -> None:
        self._open = False

    def _cover(self, thing: Any, name: str, made: Callable[[Any], Any]) -> Callable[[], None]:
        """Put `made(original)` in the place of a method of this object alone; what is given puts it back."""
        had = name in vars(thing)
        original = getattr(thing, name)
        listening = made(original)

        def covered(*arguments: Any, **named: Any) -> Any:
            # somebody may have covered it after us and keeps it so
            return (listening if self._open else original)(*arguments, **named)

        setattr(thing, name, covered)

        def uncover() -> None:
            if vars(thing).get(name) is not covered:
                return
            if had:
                setattr(thing, name, original)
            else:
                delattr(thing, name)

        return uncover

    # ── what stands in for torch's methods ──────────────────────────────────────────────────────────────────────

    def _step(self, original: Any) -> Any:
        return lambda *arguments, **named: self._listener.stepped(original, arguments, named)

    def _work(self, stage: Any, kind_of: KindOf) -> Callable[[Any], Any]:
        listener, index = self._listener, stage.stage_index

        def made(original: Any) -> Any:
            def work(*arguments: Any, **named: Any) -> Any:
                kind = kind_of(arguments, named)
                if not stage.has_backward and kind != Kind.F:
                    return original(*arguments, **named)  # which does nothing
                # torch calls perform_reduce_grad(factor), and the others (micro_batch, …) by place or by name
                first = arguments[0] if arguments else next(iter(named.values()))
                micro_batch = -1 if kind == Kind.G else first
                with listener.began(kind, stage, micro_batch):
                    start = listener.now()
                    result = original(*arguments, **named)
                    end = listener.now()
                listener.did(Done(kind, index, micro_batch, start, end), stage)
                return result

            return work

        return made

    def _loss(self, original: Any) -> Any:
        def loss(stage: Any, output: Any, targets: Any, micro_batch: int, *more: Any, **named: Any) -> Any:
            result = original(stage, output, targets, micro_batch, *more, **named)
            if stage.is_last:
                self._listener.loss_ended(stage.stage_index, micro_batch, self._listener.now())
            return result

        return loss

    def _named(self, stage: Any, kind: Kind) -> Callable[[Any], Any]:
        def made(original: Any) -> Any:
            def ops_of(micro_batch: int) -> Any:
                ops = original(micro_batch)
                for op in ops:
                    setattr(op, self._mark, (kind, stage.stage_index, micro_batch))
                return ops

            return ops_of

        return made

    def _post(self, original: Any) -> Any:
        now = self._listener.now

        def post(ops: list[Any], *more: Any, **named: Any) -> Any:
            if not ops:
                return original(ops, *more, **named)
            posted = now()
            works = original(ops, *more, **named)
            parcels = self._parcels(ops, posted) if works else []
            together = list(dict.fromkeys(one for one in parcels if one is not None))
            for parcel in together:
                self._listener.posted(parcel)
            if not together:
                return works
            if len(works) != len(ops):  # the transport has made one of several
                return [_Awaited(work, together, now) for work in works]
            return [
                work if parcel is None else _Awaited(work, [parcel], now)
                for work, parcel in zip(works, parcels, strict=True)
            ]

        return post

    def _parcels(self, ops: list[Any], posted: Stamp) -> list[Parcel | None]:
        """Of each op, the message it is a part of: several tensors go for one action; None if it is not ours."""
        found: dict[Any, Parcel] = {}
        parcels: list[Parcel | None] = []
        for op in ops:
            name = getattr(op, self._mark, None)
            if name is None:
                parcels.append(None)
                continue
            kind, stage, micro_batch = name
            parcel = found.setdefault((name, op.group_peer), Parcel(kind, stage, micro_batch, op.group_peer, 0, posted))
            parcel.bytes += op.tensor.nbytes
            parcels.append(parcel)
        return parcels


class _Awaited:
    """What torch waits on, with the time it takes noted in the parcels that come by it."""

    def __init__(self, work: Any, parcels: Sequence[Parcel], now: Callable[[], Stamp]) -> None:
        self._work, self._parcels, self._now = work, parcels, now

    def wait(self, *arguments: Any, **named: Any) -> Any:
        """As the work's own."""
        wanted = self._now()
        result = self._work.wait(*arguments, **named)
        got = self._now()
        for parcel in self._parcels:
            if parcel.wanted is None:
                parcel.wanted = wanted
            parcel.got = got
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


def _always(kind: Kind) -> KindOf:
    return lambda arguments, named: kind


def _kind_of_backward(arguments: tuple[Any, ...], named: dict[str, Any]) -> Kind:
    """B, or I where torch is told that it is not the full backward: backward_one_chunk(index, loss, full, last)."""
    full = named["full_backward"] if "full_backward" in named else len(arguments) < 3 or arguments[2]
    return Kind.B if full else Kind.I
