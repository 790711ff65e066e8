"""The ranks' reports, put together step by step and told to the hooks."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch

from explorer.core import Action, Costs, Kind
from explorer.execute._torch_ranks import Parcel
from explorer.execute.calibrate import Probe, costs_of
from explorer.execute.events import (
    Calibrated,
    Memory,
    Message,
    SlotEnd,
    SlotStart,
    StepEnd,
    StepStart,
    Transfer,
    Updated,
)
from explorer.execute.faults import Injected
from explorer.execute.hooks import Hooks
from explorer.execute.parity import Outcome
from explorer.execute.real_clock import latency_of, seen
from explorer.execute.reporter import WARM_UP
from explorer.execute.session import Bench
from explorer.execute.tasks import Between, Done
from explorer.execute.training import Job

_SENT_AS = {Kind.RECV_F: (Kind.SEND_F, -1), Kind.RECV_B: (Kind.SEND_B, 1)}


class Follower:
    """Puts the ranks' reports together, step by step, and tells the hooks."""

    def __init__(self, job: Job, bench: Bench, hooks: Hooks) -> None:
        self._job, self._bench, self._hooks = job, bench, hooks
        self._step, self._is_started = WARM_UP, False
        self._zero = 0.0
        self._begun: dict[int, dict[int, float]] = defaultdict(dict)
        self._ended: dict[int, dict[int, tuple[float, float]]] = defaultdict(
            dict
        )  # loss and recording, by step and rank
        self._waiting: dict[int, list[tuple[int, list[Any]]]] = defaultdict(list)
        self._sent: dict[tuple[Kind, int, int], tuple[int, Parcel]] = {}
        self._received: dict[tuple[Kind, int, int], tuple[int, Parcel]] = {}
        self._messages: list[Message] = []
        self._held: dict[int, list[Memory]] = defaultdict(list)  # in the first step, by slot: it is the same in all
        self._latency = 0.0
        self._probe = Probe()
        self._between: dict[int, dict[int, Between]] = defaultdict(dict)
        self.done: dict[int, Done] = {}

    @property
    def is_done(self) -> bool:
        """Whether all ranks have given back what they came to."""
        return len(self.done) == self._job.program.n_ranks

    def hear(self, rank: int, what: str, step: int, value: Any) -> None:
        """Take one report; what belongs to a step that has yet to begin is kept until then."""
        if what == "begin":
            self._begun[step][rank] = value
        elif what == "rows":
            self._waiting[step].append((rank, value))
        elif what == "end":
            self._ended[step][rank] = value
        elif what == "state":
            self._between[step][rank] = value
            self._save(step)
        elif what == "done":
            self.done[rank] = value
        self._go_on()

    def outcome(self) -> Outcome:
        """What the run came to; the caller's copy of the model then has it too."""
        model, done, device = self._bench.model, self.done.values(), self._bench.model.device
        gradients: dict[str, torch.Tensor] = {}
        outputs: dict[int, torch.Tensor] = {}
        for one in done:
            self._load(one.states)
            gradients.update(one.gradients)
            outputs.update(one.outputs)
        losses = [self._loss_of(step) for step in range(self._job.n_steps)] if self._job.loss is not None else []
        named = {name: gradients[name].to(device) for name in model.parameters if name in gradients}
        output = torch.cat([outputs[m].to(device) for m in sorted(outputs)]) if outputs else None
        sketches = [
            {name: sums for each in parts for name, sums in each.items()}
            for parts in zip(*(one.sketches for one in done), strict=True)
        ]
        return Outcome(losses, named, dict(model.parameters), output, model.buffers(), sketches)

    def _load(self, states: Mapping[int, Mapping[str, torch.Tensor]]) -> None:
        """Put a rank's stages into the caller's copy of the model."""
        for stage, state in states.items():
            self._bench.model.stages[stage].load_state_dict(state)

    def _save(self, step: int) -> None:
        """Save the state after a step, once all ranks have told theirs."""
        saving = self._job.saving
        if saving is None or len(self._between[step]) < self._job.program.n_ranks:
            return
        optimizer: dict[str, dict[str, Any]] = {}
        types = set[str]()
        for one in self._between.pop(step).values():
            self._load(one.states)
            optimizer.update(one.optimizer)
            types.update(one.optimizer_type.split())
        saving.save(step, self._bench.model.state(), optimizer, " ".join(sorted(types)))

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self) -> None:
        n_ranks = self._job.program.n_ranks
        while self._step < self._job.n_steps and len(self._begun[self._step]) == n_ranks:
            if not self._is_started:
                self._start()
            for rank, rows in self._waiting.pop(self._step, ()):
                for row in rows:
                    self._tell(rank, row)
            if len(self._ended[self._step]) < n_ranks:
                return
            self._finish()
            self._step, self._is_started = self._step + 1, False

    def _start(self) -> None:
        self._is_started = True
        first = min(self._begun[self._step].values())
        self._sent.clear()
        self._received.clear()
        if self._step == WARM_UP:
            return
        if not self._step:
            self._zero = first
        self._hooks.step_start(StepStart(self._step, first - self._zero))

    def _finish(self) -> None:
        if self._step == WARM_UP:
            self._latency = latency_of(self._messages)
            links = Costs(latency=self._latency)
            self._hooks.calibrated(Calibrated(costs_of(self._job.program, self._bench, self._probe, links)))
        else:
            recording = max(share for _, share in self._ended[self._step].values())
            self._hooks.step_end(StepEnd(self._step, self._loss_of(self._step), recording))

    def _loss_of(self, step: int) -> float:
        last = int(self._job.program.placement.routes[0][-1])
        return self._ended[step][last][0]

    def _tell(self, rank: int, row: Any) -> None:
        if isinstance(row, Parcel):
            self._match(rank, row)
        elif self._step == WARM_UP:
            self._warmed(row)
        elif isinstance(row, SlotEnd):
            self._hooks.slot_start(SlotStart(row.step, rank, row.slot, row.actions))
            self._hooks.slot_end(row.earlier(self._zero))
            for memory in self._held.get(row.slot, ()) if self._step else ():
                self._hooks.memory(dataclasses.replace(memory, step=self._step))
        elif isinstance(row, Updated):
            self._hooks.updated(dataclasses.replace(row, begun=row.begun - self._zero))
        elif isinstance(row, Memory):
            if not self._step:
                self._held[row.slot].append(row)
            self._hooks.memory(row)
        elif isinstance(row, Injected):
            self._hooks.injected(dataclasses.replace(row, begun=row.begun - self._zero))

    def _warmed(self, row: Any) -> None:
        if isinstance(row, SlotEnd):
            self._probe.slot_end(row)
        elif isinstance(row, Memory):
            self._probe.memory(row)

    def _match(self, rank: int, parcel: Parcel) -> None:
        """Put a message's two ends together."""
        if math.isnan(parcel.got):
            key = parcel.kind, parcel.stage, parcel.micro_batch
            self._sent[key] = rank, parcel
        else:
            kind, offset = _SENT_AS[parcel.kind]
            key = kind, parcel.stage + offset, parcel.micro_batch
            self._received[key] = rank, parcel
        if key in self._sent and key in self._received:
            self._message(*self._sent.pop(key), *self._received.pop(key))

    def _message(self, source: int, sent: Parcel, target: int, received: Parcel) -> None:
        was_seen = seen(received.got - received.wanted)
        left, wanted, got = (time - self._zero for time in (sent.posted, received.wanted, received.got))
        ready = max(left, received.posted - self._zero)
        arrived = max(got if was_seen else min(ready + self._latency, wanted), ready)
        action = Action(sent.kind, sent.stage, sent.micro_batch, peer=target)
        message = Message(self._step, action, source, sent.bytes, left, wanted, arrived, was_seen, ready)
        if self._step == WARM_UP:
            self._messages.append(message)
            return
        self._hooks.message(message)
        if self._hooks.hears("transfer"):
            self._hooks.transfer(Transfer(self._step, action, source, target, sent.bytes, arrived - ready))
