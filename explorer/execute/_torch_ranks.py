"""What of torch a rank in a process of its own needs besides: its group, its lowering, and the watch on its messages.

Torch's own lowering adds sends and receives to our table: in the order in which one rank sends to another, the other
receives. All are begun without waiting; a receive is waited for where its action needs it.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch

from explorer.core import Action, Kind
from explorer.errors import EngineError
from explorer.execute._torch import BEFORE_2_13, Engine, Stage, _parts, _schedules, on_loopback
from explorer.execute.held_back import HeldBack

LOOPBACK = "127.0.0.1"


class Parcel(NamedTuple):
    """A message as one end sees it.

    Attributes:
        kind: SEND_F, RECV_F, SEND_B or RECV_B.
        stage: that sends or receives.
        micro_batch: it belongs to.
        bytes: it carries.
        posted: seconds at which the transport was told of it.
        wanted: seconds at which its receiver began to wait; NaN of a send.
        got: seconds at which the receiver went on; NaN of a send.
    """

    kind: Kind
    stage: int
    micro_batch: int
    bytes: int
    posted: float
    wanted: float = math.nan
    got: float = math.nan


class Courier:
    """Times what torch's runtime sends and receives.

    Args:
        clock: seconds now.
        waits: called with True before a receive is waited for, and with False afterwards.
        tell: called with every message.

    Attributes:
        hold_back: seconds that a message of this kind, stage and micro-batch waits before it is sent.
    """

    def __init__(
        self, clock: Callable[[], float], waits: Callable[[bool], None], tell: Callable[[Parcel], None]
    ) -> None:
        self._clock, self._waits, self._tell = clock, waits, tell
        self._next: tuple[Kind, int, int] | None = None
        self._post: Any = None
        self._held: dict[int, HeldBack] = {}
        self.hold_back: Callable[[Kind, int, int], float] = _at_once

    def name(self, kind: Kind, stage: int, micro_batch: int) -> None:
        """What is posted next."""
        self._next = kind, stage, micro_batch

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Within it, torch's runtime posts through this courier.

        Raises:
            EngineError: if torch has no such place.
        """
        lacking = [name for name in ("_batch_p2p", "_add_send_recv") if not hasattr(_schedules, name)]
        if lacking:
            raise EngineError(
                f"ranks in processes need torch's {', '.join(lacking)}; this is torch {torch.__version__}; try pip "
                'install "torch>=2.12", or backend="kernel"'
            )
        self._post = _schedules._batch_p2p  # noqa: SLF001
        _schedules._batch_p2p = self._posted  # noqa: SLF001
        try:
            yield
        finally:
            _schedules._batch_p2p = self._post  # noqa: SLF001

    def _posted(self, ops: list[Any], desc: str | None = None) -> list[Any]:
        named, self._next = self._next, None
        if named is not None and ops and named[0] in (Kind.SEND_F, Kind.SEND_B):
            seconds, before = self.hold_back(*named), self._held.get(ops[0].peer)
            if seconds or (before is not None and not before.is_gone):
                return [self._later(named, ops, desc, seconds)]
        posted = self._clock()
        works: list[Any] = self._post(ops, desc)
        if named is None or not works:
            return works
        parcel = Parcel(*named, sum(op.tensor.nbytes for op in ops), posted)
        if parcel.kind in (Kind.SEND_F, Kind.SEND_B):
            self._tell(parcel)
            return works
        return [_Awaited(works, parcel, self)]

    def _later(self, named: tuple[Kind, int, int], ops: list[Any], desc: str | None, seconds: float) -> HeldBack:
        """Send a message after so many seconds, behind what is held back to the same rank already."""
        parcel = Parcel(*named, sum(op.tensor.nbytes for op in ops), math.nan)
        held = HeldBack(
            lambda: self._post(ops, desc),
            seconds,
            self._held.get(ops[0].peer),
            sent=lambda posted: self._tell(parcel._replace(posted=posted)),
            clock=self._clock,
        )
        self._held[ops[0].peer] = held
        return held

    def await_all(self, works: Sequence[Any], parcel: Parcel) -> None:
        """Wait for a message's parts, and tell how long that took."""
        self._waits(True)
        wanted = self._clock()
        for work in works:
            work.wait()
        got = self._clock()
        self._waits(False)
        self._tell(parcel._replace(wanted=wanted, got=got))


def _at_once(kind: Kind, stage: int, micro_batch: int) -> float:
    """Nothing is held back."""
    return 0.0


class _Awaited:
    """The parts of one message, as the one thing to wait for that torch expects."""

    def __init__(self, works: Sequence[Any], parcel: Parcel, courier: Courier) -> None:
        self._works, self._parcel, self._courier = works, parcel, courier

    def wait(self) -> None:
        """Wait for all parts."""
        self._courier.await_all(self._works, self._parcel)


class RankStage(Stage):
    """A stage whose neighbours may be in other processes."""

    def __init__(
        self,
        *arguments: Any,
        courier: Courier,
        inputs: tuple[torch.Tensor, ...],
        outputs: tuple[torch.Tensor, ...],
        **named: Any,
    ) -> None:
        inputs, outputs = _laid_out(inputs), _laid_out(outputs)
        super().__init__(*arguments, inputs=inputs, outputs=outputs, **named)
        self._courier, self._like = courier, inputs

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """Torch's own, as it can be sent: a transposed output, as an LSTM gives it, is copied."""
        output = super().forward_maybe_with_nosync(*args, **kwargs)
        return output.contiguous() if isinstance(output, torch.Tensor) else _laid_out(output)

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> Any:
        """Torch's own, into room made now: the last step's went with its backward."""
        for info, like in zip(self.args_recv_info[fwd_chunk_id], self._like, strict=True):
            if info.buffer is None:
                info.buffer = torch.empty_like(like, requires_grad=False)
        self._courier.name(Kind.RECV_F, self.stage_index, fwd_chunk_id)
        return super().get_fwd_recv_ops(fwd_chunk_id)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> Any:
        """Torch's own, named."""
        self._courier.name(Kind.RECV_B, self.stage_index, bwd_chunk_id)
        return super().get_bwd_recv_ops(bwd_chunk_id)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> Any:
        """Torch's own, named; without a backward nothing is kept for longer."""
        self._courier.name(Kind.SEND_F, self.stage_index, fwd_chunk_id)
        ops = super().get_fwd_send_ops(fwd_chunk_id)
        if not self.has_backward:
            super()._forget(fwd_chunk_id)
        return ops

    def _forget(self, micro_batch: int) -> None:
        if self.is_last or self._is_same_rank(self.stage_index + 1):
            super()._forget(micro_batch)

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> Any:
        """Torch's own, named, and as they can be sent."""
        self._courier.name(Kind.SEND_B, self.stage_index, bwd_chunk_id)
        if BEFORE_2_13 and not self.is_first:
            self._send_as_received(bwd_chunk_id)
        ops = super().get_bwd_send_ops(bwd_chunk_id)
        for op in ops:
            op.tensor = op.tensor.contiguous()
        return ops

    def _send_as_received(self, micro_batch: int) -> None:
        """Where no gradient came out, send zeros, and none of what needs none: so the other end expects it."""
        if self.grad_send_info is None:
            self.grad_send_info: list[int | None]
            to = self._create_grad_send_info(self.args_recv_info[0])
            self.grad_send_info = [
                one if like.requires_grad else None for one, like in zip(to, self._like, strict=True)
            ]
        grads = zip(self.bwd_cache[micro_batch], self._like, strict=True)
        self.bwd_cache[micro_batch] = tuple(
            torch.zeros_like(like) if grad is None and like.requires_grad else grad for grad, like in grads
        )


def _laid_out(tensors: Iterable[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Row by row in memory: a transport takes nothing else."""
    return tuple(tensor.contiguous() for tensor in tensors)


class RankEngine(Engine):
    """Torch's runtime over the stages of one rank, its table completed by torch's own lowering."""

    def __init__(
        self,
        stages: Sequence[Stage],
        n_micro_batches: int,
        loss: Any,
        *,
        trains: bool,
        orders: Mapping[int, Sequence[Action]],
        rank_of_stage: Sequence[int],
    ) -> None:
        super().__init__(stages, n_micro_batches, loss, trains=trains, order=())
        self.stage_index_to_group_rank = dict(enumerate(rank_of_stage))
        for stage in stages:
            stage.stage_index_to_group_rank = self.stage_index_to_group_rank
        action, kinds = _parts["_Action"], _parts["_ComputationType"]
        table = {
            rank: [action(a.stage, kinds(a.kind.name), a.micro_batch) for a in order] for rank, order in orders.items()
        }
        empty: dict[int, list[Any]] = {rank: [] for rank in table}
        busy = {rank: row for rank, row in table.items() if row}
        lowered = _schedules._add_send_recv(busy, rank_of_stage.__getitem__, len(rank_of_stage))  # noqa: SLF001
        self.pipeline_order_with_comms = {**empty, **lowered}


class Ranks:
    """The group that this process is in, on this machine's loopback alone; kept while its ranks are the same.

    Args:
        rank: of this process.
        listener: a socket that listens, for rank 0, which keeps the ranks' store.
    """

    def __init__(self, rank: int, listener: socket.socket | None) -> None:
        self._rank, self._listener = rank, listener
        self._store: Any = None
        self._number = 0

    def join(self, number: int, n_ranks: int, port: int, seconds: float, *, backend: str = "gloo") -> None:
        """Be in the group of this number, made now unless it is the last one again.

        Args:
            number: of the group.
            n_ranks: in it.
            port: that the store listens on.
            seconds: the longest wait for another rank.
            backend: that carries messages, "gloo" or "nccl".
        """
        if number == self._number:
            return
        distributed: Any = torch.distributed
        limit = timedelta(seconds=seconds)
        if distributed.is_initialized():
            distributed.destroy_process_group()
        if self._store is None:
            # a store that binds by itself listens on every address of the machine
            own = {} if self._listener is None else {"master_listen_fd": self._listener.detach()}
            self._store = distributed.TCPStore(
                LOOPBACK, port, None, self._rank == 0, limit, wait_for_workers=False, **own
            )
        store = distributed.PrefixStore(str(number), self._store)
        with on_loopback():
            distributed.init_process_group(backend, store=store, rank=self._rank, world_size=n_ranks, timeout=limit)
        self._number = number


def barrier() -> None:
    """Wait for all ranks."""
    distributed: Any = torch.distributed
    distributed.barrier()
