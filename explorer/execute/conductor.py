"""Follows torch's runtime through the planned order, times every action and tells the hooks."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from explorer.core import Action, Category, Costs, Kind, Program, graph_of
from explorer.core.rules import BACKWARD_MESSAGE
from explorer.errors import EngineError, RunError
from explorer.execute.activations import Activations, Change
from explorer.execute.allocator import Allocated
from explorer.execute.events import Memory, SlotEnd, SlotStart, Transfer
from explorer.execute.hooks import Hooks
from explorer.execute.injection import Injection
from explorer.simulate import slot_times

Slots = npt.NDArray[np.int64]


def execution_order(program: Program, costs: Costs) -> Slots:
    """(n_slots,) the slots by the start the simulator expects: an order of dependency that fills all ranks evenly.

    Slots that start together keep the graph's order, in which each comes after all it waits for.
    """
    graph = graph_of(program)
    start, _ = slot_times(graph, costs.slot_seconds(program), costs.edge_seconds(graph))
    place = np.empty(program.n_slots, np.int64)
    place[graph.order] = np.arange(program.n_slots)
    return np.asarray(np.lexsort((place, start)), np.int64)


class Conductor:
    """The watch of torch's stages: what runs, how long it takes, and what it holds.

    Actions of one slot run one after the other; the slot takes the sum of their seconds. Nothing between actions
    counts. Memory is followed in the first step and taken as the same in the others, so that only the first pays.

    Args:
        program: that runs.
        order: (n_slots,) the slots in the order they run in.
        hooks: who is told.
        clock: seconds now.
        wait: blocks until the device has done all it was given; does nothing on a CPU.
        before: called with step, stage and micro-batch before each forward, outside of what is timed.
        activations: who follows memory.
        gradient_bytes: bytes of the gradients of a stage that are there now.
        describe: an action in words, for errors.
        costs: the link model, for those who hear of transfers.
        injection: of faults, or None.
        repeats: whether the hooks are told of memory in each step, or in the first and know the rest.
    """

    def __init__(
        self,
        program: Program,
        order: Slots,
        hooks: Hooks,
        *,
        clock: Callable[[], float],
        wait: Callable[[], None],
        before: Callable[[int, int, int], None],
        activations: Activations | Allocated,
        gradient_bytes: Callable[[int], int],
        describe: Callable[[Action], str],
        costs: Costs | None = None,
        injection: Injection | None = None,
        repeats: bool = True,
    ) -> None:
        self._injection, self._repeats = injection, repeats
        self._hooks, self._clock, self._wait, self._before = hooks, clock, wait, before
        self._activations, self._gradient_bytes = activations, gradient_bytes
        self._program, self._describe = program, describe
        self._plan = _plan(program, order)
        self.order = [action for _, _, actions in self._plan for action in actions]
        self._transfers = _transfers(program, costs) if costs and hooks.hears("transfer") else {}
        self._memory: dict[int, list[Change]] = {}
        self.losses = np.full(program.n_micro_batches, np.nan)
        self.outputs: dict[int, torch.Tensor] = {}
        self.step = -1
        self.hook_error: BaseException | None = None
        self.running: Action | None = None

    def start_step(self, step: int) -> None:
        """Go to the beginning of the order."""
        self.step, self._place, self._within = step, 0, 0
        self._moments: list[tuple[float, float]] = []
        self._with_gradients: set[int] = set()
        self.losses[:] = np.nan
        self.running = None
        self._activations.start()

    def tell(self, name: str, event: Any) -> None:
        """Tell the hooks; what they raise is remembered as theirs."""
        try:
            getattr(self._hooks, name)(event)
        except BaseException as error:
            self.hook_error = error
            raise

    # ── torch's stages call these ───────────────────────────────────────────────────────────────────────────────

    def begin(self, kind: Kind, stage: int, micro_batch: int) -> None:
        """An action is about to run.

        Raises:
            EngineError: if torch runs something else than was planned.
        """
        slot, rank, actions = self._plan[self._place]
        action = actions[self._within]
        if (kind, stage, micro_batch) != action[:3]:
            raise EngineError(f"torch's runtime was to run {action}; it ran {Action(kind, stage, micro_batch)}")
        if not self._within:
            self.tell("slot_start", SlotStart(self.step, rank, slot, actions))
        self.running = action
        if kind == Kind.F:
            self._before(self.step, stage, micro_batch)
        if self._injection is not None:
            self._injection.begin(self.step, rank, slot, self.running)
        self._wait()
        self._began = self._clock()

    def saving(self, stage: int, micro_batch: int) -> AbstractContextManager[Any]:
        """Within it, what autograd saves is counted, in the first step."""
        return self._activations.saving(stage, micro_batch) if not self.step else contextlib.nullcontext()

    def end(self, kind: Kind, stage: int, micro_batch: int, kept: Sequence[torch.Tensor] = ()) -> None:
        """An action has run; the last of a slot ends it."""
        self._wait()
        if self._injection is not None:
            self._injection.stretch(*self._here(), lambda: float(self._clock() - self._began))
        ended = self._clock()
        if self._injection is not None:
            self._injection.say_messages(*self._here())
        self._moments.append((self._began, ended))
        self._outputs_of(kind, stage, micro_batch, kept)
        if not self.step:
            self._follow(kind, stage, micro_batch, kept)
        self._within += 1
        slot, rank, actions = self._plan[self._place]
        if self._within < len(actions):
            return
        moments, self._moments = tuple(self._moments), []
        self._place, self._within = self._place + 1, 0
        self.running = None
        seconds = sum(end - begin for begin, end in moments)
        inner = moments if len(moments) > 1 else ()
        self._tell_end(SlotEnd(self.step, rank, slot, actions, seconds, moments[0][0], ended, inner))

    def loss(self, micro_batch: int, loss: torch.Tensor) -> None:
        """The last stage has come to a loss.

        Raises:
            RunError: if it is no finite number.
        """
        value = self.losses[micro_batch] = float(loss)
        if not math.isfinite(value):
            action = Action(Kind.F, self._program.n_stages - 1, micro_batch)
            raise RunError(
                f"a loss must be a finite number; {self._describe(action)} gave {value}; look at the inputs, "
                "or try a lower learning rate"
            )

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> tuple[int, int, int, Action]:
        """Step, rank, slot and action that it is at."""
        slot, rank, actions = self._plan[self._place]
        return self.step, rank, slot, actions[self._within]

    def _outputs_of(self, kind: Kind, stage: int, micro_batch: int, kept: Sequence[torch.Tensor]) -> None:
        if kind == Kind.F and stage == self._program.n_stages - 1 and not self._program.has_backward:
            self.outputs[micro_batch] = kept[-1]

    def _follow(self, kind: Kind, stage: int, micro_batch: int, kept: Sequence[torch.Tensor]) -> None:
        memory = self._activations
        if kind in (Kind.B, Kind.W):
            self._follow_gradients(stage, micro_batch)
        if kind == Kind.F:
            memory.keep(stage, micro_batch, kept)
        elif kind == Kind.I:
            memory.keep_gradients(stage, micro_batch, kept)
        if kind in (Kind.B, Kind.W) or not self._program.has_backward:
            memory.let_go(stage, micro_batch)
            memory.let_go_gradients(stage, micro_batch)

    def _follow_gradients(self, stage: int, micro_batch: int) -> None:
        """A stage's gradients are there from its first backward on."""
        if stage not in self._with_gradients:
            self._with_gradients.add(stage)
            rank = int(self._program.placement.rank_of(stage, micro_batch))
            size = self._gradient_bytes(stage)
            slot = self._plan[self._place][0]
            self._memory.setdefault(slot, []).append(Change(False, Category.GRADIENTS, rank, stage, -1, size))
            self._activations.grew(size)

    def _tell_end(self, event: SlotEnd) -> None:
        slot = event.slot
        self.tell("slot_end", event)
        if not self.step:
            self._memory[slot] = _added_up([*self._memory.get(slot, ()), *self._activations.changes()])
        if self._hooks.hears("memory") and (self._repeats or not self.step):
            for change in self._memory.get(slot, ()):
                at_end, category, holder, stage, micro_batch, delta = change
                self.tell("memory", Memory(self.step, slot, at_end, holder, category, stage, micro_batch, delta))
        for transfer in self._transfers.get(slot, ()):
            self.tell("transfer", Transfer(self.step, *transfer))


def _added_up(changes: list[Change]) -> list[Change]:
    """One change for each purpose and moment, where autograd saved many tensors."""
    sums: dict[tuple[bool, Category, int, int, int], int] = {}
    for *what, delta in changes:
        key = tuple(what)
        sums[key] = sums.get(key, 0) + delta  # type: ignore[index, arg-type]
    return [Change(*what, delta) for what, delta in sums.items() if delta]


def _plan(program: Program, order: Slots) -> list[tuple[int, int, tuple[Action, ...]]]:
    """Slot, rank and actions of each slot, in the order they run in."""
    plan = []
    for slot in order.tolist():
        actions = tuple(program.action(i) for i in range(program.slot_offsets[slot], program.slot_offsets[slot + 1]))
        plan.append((slot, int(program.rank_of_slot[slot]), actions))
    return plan


def _transfers(program: Program, costs: Costs) -> dict[int, list[tuple[Action, int, int, int, float]]]:
    """What each slot sends when it has ended, to whom, how many bytes and for how long."""
    graph = graph_of(program)
    edges, rank = graph.dependencies, program.rank_of_action
    sent: dict[int, list[tuple[Action, int, int, int, float]]] = {}
    sizes, seconds = costs.bytes_of_messages(graph), costs.message_seconds(graph)
    for row, size, time in zip(graph.messages.tolist(), sizes.tolist(), seconds.tolist(), strict=True):
        source, target = int(edges.source[row]), int(edges.target[row])
        kind = Kind.SEND_B if edges.message[row] == BACKWARD_MESSAGE else Kind.SEND_F
        ends = int(rank[source]), int(rank[target])
        action = program.action(source)._replace(kind=kind, peer=ends[1])
        sent.setdefault(int(graph.source_slot[row]), []).append((action, *ends, round(size), time))
    return sent
