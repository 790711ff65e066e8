"""Two ranks, as torchrun starts them, that go through several runs and write down what they saw."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import nn

import explorer as ex
from explorer.errors import ExplorerError
from explorer.execute import party

N_STEPS, N_MICRO_BATCHES = 4, 4
RANK = int(os.environ.get("RANK", "0"))


class Counted(nn.Module):
    """A layer whose forwards are counted over all its copies."""

    calls: dict[int, int] = {}

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.inner = number, nn.Linear(8, 8)

    def forward(self, x):
        self.calls[self.number] = self.calls.get(self.number, 0) + 1
        return torch.tanh(self.inner(x))


def program(name: str, n_chunks: int = 1) -> ex.Program:
    return ex.schedule(name, n_ranks=2, n_micro_batches=N_MICRO_BATCHES, n_chunks=n_chunks)


def train(made: ex.Program, **more) -> ex.Run:
    torch.manual_seed(0)
    layers = [Counted(0), nn.Dropout(0.25), Counted(1), Counted(2)]
    batch = torch.randn(8, 8), torch.randn(8, 8)
    if more.get("backend") == "torchrun":
        torch.manual_seed(RANK)  # dropout draws from rank 0's seed, as said by who begins the run
    return ex.execute(
        made,
        layers,
        batch,
        loss=nn.functional.mse_loss,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        **more,
    )


class Watch(ex.Hook):
    """Notes at the end of each step how often each layer had run by then."""

    def __init__(self) -> None:
        self.at_start, self.by_step, self.slots = {}, [], 0

    def run_start(self, event) -> None:
        self.at_start = dict(Counted.calls)

    def slot_end(self, event) -> None:
        self.slots += 1

    def calls(self) -> dict[int, int]:
        return {number: Counted.calls[number] - self.at_start.get(number, 0) for number in Counted.calls}

    def step_end(self, event) -> None:
        self.by_step.append((event.step, event.loss, self.slots, self.calls()))


class Full:
    """A disk that is full from its third file on."""

    def __init__(self) -> None:
        self.real, self.n_written = os.fsync, 0

    def __call__(self, number: int) -> None:
        self.n_written += 1
        if self.n_written > 2:
            raise OSError(28, "No space left on device")
        self.real(number)


class Stopping(ex.Hook):
    """Ends the run on the first rank alone, after a step."""

    def step_end(self, event) -> None:
        if RANK == 0 and event.step == 1:
            raise KeyError("a fuse has blown")


def watched(folder: Path) -> dict:
    watch = Watch()
    own = folder / f"of-rank-{RANK}"
    run = train(
        program("1f1b"), backend="torchrun", n_steps=N_STEPS, checkpoint=own, every=2, keep_last=2, hooks=[watch]
    )
    return {
        "losses": run.losses,
        "parity": bool(run.parity),
        "reference": run.reference,
        "steps": watch.by_step,
        "calls": watch.calls(),
        "files": sorted(path.name for path in own.iterdir()) if own.exists() else None,
        "n_events": len(run.trace.events),
    }


def resumed(folder: Path, made: ex.Program) -> dict:
    file = folder / f"of-rank-{RANK}" / "step-00000002.safetensors"
    run = train(made, backend="torchrun", n_steps=2, resume=file)
    return {"losses": run.losses, "parity": bool(run.parity), "first_step": run.first_step}


def failed(**more) -> dict:
    try:
        train(program("1f1b"), backend="torchrun", **more)
    except (ExplorerError, KeyError) as error:
        trace = getattr(error, "trace", None)
        return {
            "type": type(error).__name__,
            "text": str(error),
            "argument": getattr(error, "argument", None),
            "steps": trace.steps if trace is not None else None,
        }
    return {}


def full(folder: Path) -> dict:
    real = os.fsync
    os.fsync = Full()
    try:
        return failed(n_steps=4, checkpoint=folder / "full")
    finally:
        os.fsync = real


def late() -> int:
    """The first needs longer for something than any message may take."""
    with party.joined(2, nn.Linear(1, 1), 2.0) as crew:
        return crew.decide(lambda: time.sleep(5.0) or 7)


def gone() -> str:
    """The first ends while the others wait for it."""
    with party.joined(2, nn.Linear(1, 1), 20.0) as crew:
        try:
            crew.decide(lambda: os._exit(0))
        except ExplorerError as error:
            return f"{type(error).__name__}: {error}"
    return ""


def main(folder: Path) -> None:
    (folder / "a file").write_text("")
    told = {
        "whole": watched(folder),
        "interleaved": resumed(folder, program("interleaved_1f1b", 2)),
        "split": resumed(folder, program("zb_h1")),
        "nowhere": failed(resume=folder / "nowhere"),
        "no folder": failed(checkpoint=folder / "a file"),
        "full": full(folder),
        "unlike": failed(n_steps=1 + RANK),
        "late": late(),
        "stopped": failed(n_steps=3, hooks=[Stopping()], timeout=20.0),
    }
    file = folder / f"told-{RANK}.json"
    file.write_text(json.dumps(told))
    file.write_text(json.dumps({**told, "gone": gone()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
