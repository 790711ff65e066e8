"""A training is saved between two steps by parameter name, and goes on at other ranks, chunks and schedules."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

import explorer as ex
from explorer.errors import InputError
from explorer.execute.checkpoint_file import read_tensors, write_tensors
from explorer.execute.checkpoint_folder import latest
from explorer.execute.checkpoint_state import FORMAT, State

MSE = nn.functional.mse_loss

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}


@pytest.fixture
def layers(make_layers) -> list[nn.Module]:
    return make_layers(8)


def program(name: str, n_ranks: int, n_chunks: int = 1) -> ex.Program:
    return ex.schedule(name, n_ranks=n_ranks, n_micro_batches=4, n_chunks=n_chunks)


class Trained(NamedTuple):
    """Four steps at once, and the first two of them with a checkpoint: once for all that go on from there."""

    train: Callable[..., ex.Run]
    whole: ex.Run
    first: ex.Run
    folder: Path


@pytest.fixture(scope="module", params=OPTIMIZERS.values(), ids=OPTIMIZERS)
def trained(request, tmp_path_factory) -> Trained:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(8)]
        batch = torch.randn(16, 8), torch.randn(16, 8)
    train = functools.partial(ex.execute, model=layers, batch=batch, loss=MSE, optimizer=request.param)
    folder = tmp_path_factory.mktemp("checkpoints")
    whole = train(program("1f1b", 2), n_steps=4)
    return Trained(train, whole, train(program("1f1b", 2), n_steps=2, checkpoint=folder), folder)


@pytest.mark.parametrize(
    "second",
    [("1f1b", 4, 1), ("interleaved_1f1b", 2, 2), ("zb_h1", 2, 1), ("gpipe", 1, 1)],
    ids=["four ranks", "two chunks", "ZB-H1", "one rank"],
)
def test_a_resumed_run_equals_the_uninterrupted_one(second, trained):
    _, whole, first, folder = trained
    rest = trained.train(program(*second), n_steps=2, resume=folder)
    assert first.parity
    assert rest.parity
    assert rest.first_step == 2
    assert first.losses + rest.losses == pytest.approx(whole.losses, rel=1e-5)
    for name, tensor in whole.state_dict().items():
        torch.testing.assert_close(rest.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_random_layers_draw_the_same_after_a_resume_at_other_ranks(batch, tmp_path, sgd):
    layers = [nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5)]
    whole = ex.execute(program("1f1b", 2), layers, batch, loss=MSE, optimizer=sgd, n_steps=3)
    ex.execute(program("1f1b", 2), layers, batch, loss=MSE, optimizer=sgd, n_steps=1, checkpoint=tmp_path)
    torch.manual_seed(99)  # the seed is the first run's
    rest = ex.execute(program("zb_h1", 4), layers, batch, loss=MSE, optimizer=sgd, n_steps=2, resume=tmp_path)
    assert rest.parity
    assert rest.losses == pytest.approx(whole.losses[1:], rel=1e-5)


def test_the_union_of_what_is_saved_is_the_model(batch, tmp_path, make_layers):
    """16 layers on two ranks of two stages: each saved once, none twice."""
    layers = [nn.Linear(8, 8) for _ in range(15)] + [nn.BatchNorm1d(8)]
    ex.execute(program("interleaved_1f1b", 2, 2), layers, batch, loss=MSE, checkpoint=tmp_path)
    tensors, words = read_tensors(tmp_path / "step-00000001.safetensors")
    names = {name.removeprefix("model/") for name in tensors}
    assert names == set(nn.Sequential(*layers).state_dict())
    assert len({name.split(".")[0] for name in names}) == 16
    assert words["step"] == "1"


def test_every_and_keep_last_say_which_stay(layers, batch, tmp_path, sgd):
    ex.execute(
        program("gpipe", 2),
        layers,
        batch,
        loss=MSE,
        optimizer=sgd,
        n_steps=7,
        checkpoint=tmp_path / "new" / "folder",
        every=2,
        keep_last=3,
    )
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"step-{step:08d}.safetensors" for step in (4, 6, 7)
    ]


def test_a_run_goes_on_in_its_own_folder_and_from_a_single_file(layers, batch, tmp_path, sgd):
    one = ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=sgd, n_steps=2, checkpoint=tmp_path)
    two = ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=sgd, checkpoint=tmp_path, resume=tmp_path)
    assert (tmp_path / "step-00000003.safetensors").exists()
    again = ex.execute(
        program("gpipe", 2), layers, batch, loss=MSE, optimizer=sgd, resume=tmp_path / "step-00000001.safetensors"
    )
    assert again.losses == pytest.approx(one.losses[1:])
    assert two.losses[0] < again.losses[0]


def test_a_folder_of_a_run_that_is_further_on_is_left_alone(layers, batch, tmp_path):
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, n_steps=2, checkpoint=tmp_path)
    with pytest.raises(InputError, match=r"holds one run; .* has step 2 of another, and this one begins at step 0"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path)
    early = tmp_path / "step-00000001.safetensors"
    with pytest.raises(InputError, match="this one begins at step 1; give another folder"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path, resume=early)


def test_a_run_that_fails_while_it_writes_leaves_whole_files_alone(layers, batch, tmp_path, monkeypatch, sgd):
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=sgd, n_steps=1, checkpoint=tmp_path)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match=r"can be written to; .* cannot: No space left on device; give another"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=sgd, checkpoint=tmp_path, resume=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001.safetensors"]


def test_files_that_are_no_whole_checkpoint_are_refused_in_a_sentence(layers, batch, tmp_path):
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path)
    good = tmp_path / "step-00000001.safetensors"
    data = good.read_bytes()
    for content, message in [
        (data[:-1], r"all its bytes; bad has [\d,]+ of [\d,]+; resume from the one before"),
        (data[:40], r"all its bytes; bad has 40 of"),
        (data + b"0", "all its bytes"),
        (b"", "bad has no table"),
        (b"hello, I am a text of some length", "bad has no table"),
        (pickle.dumps({"a": 1}), "is an archive or a pickle, which may"),
        (b"PK\x03\x04" + b"0" * 99, "is an archive or a pickle, which may"),
        ((9).to_bytes(8, "little") + b"[1, 2, 3]", "a table that is none"),
        ((9).to_bytes(8, "little") + b"{1, 2, 3]", "a table that is no JSON"),
    ]:
        bad = tmp_path / "bad"
        bad.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            ex.execute(program("gpipe", 2), layers, batch, loss=MSE, resume=bad)
        assert "\n" not in str(caught.value)
        assert caught.value.argument == "resume"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, "a shape that does not fit its bytes"),
        ({"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]}, "a shape that does not fit its bytes"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}, "a shape that does not fit its bytes"),
        ({"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}, "'x' without format, shape or place"),
        ([], "'x' without format, shape or place"),
        ({"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}, "all its bytes"),
        ({"dtype": "F32", "shape": [float("inf")], "data_offsets": [0, 8]}, "'x' without format, shape or place"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, float("inf")]}, "'x' without format, shape or place"),
        ({"dtype": "F32", "shape": [0, 2**70], "data_offsets": [0, 0]}, "a shape that does not fit its bytes"),
        ({"dtype": "F32", "shape": [2] + [1] * 99, "data_offsets": [0, 8]}, "a shape that does not fit its bytes"),
    ],
)
def test_tables_that_lie_are_refused(entry, message, tmp_path):
    header = json.dumps({"x": entry}).encode()
    (tmp_path / "bad").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
    with pytest.raises(InputError, match=message):
        read_tensors(tmp_path / "bad")


def test_a_file_of_tensors_that_is_no_checkpoint_is_refused(layers, batch, tmp_path):
    write_tensors(tmp_path / "other", {"weight": torch.ones(2)}, {"format": "pt"})
    with pytest.raises(InputError, match="says of itself 'pipeline-explorer checkpoint 1', a step and a seed; other"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, resume=tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": "-1"}, "'-1' as its step"),
        ({"step": "9" * 5000}, "'99999999999999999999' as its step"),
        ({"seed": str(2**64)}, f"'{2**64}' as its seed"),
        ({"numbers": "[]"}, "other things than numbers as its optimizer's"),
        ({"numbers": '{"weight": {"count": "many"}}'}, "other things than numbers as its optimizer's"),
        ({"numbers": "[" * 100_000}, "no numbers of its optimizer"),
        ({"numbers": '{"weight": {"count": 1}}', "type": ""}, "not the optimizer whose state it holds"),
    ],
)
def test_words_that_cannot_be_are_refused(changes, message, tmp_path):
    words = {"format": FORMAT, "step": "1", "seed": "0", "numbers": "{}", "type": "SGD"}
    write_tensors(tmp_path / "bad", {"model/weight": torch.ones(2)}, {**words, **changes})
    with pytest.raises(InputError, match=f"bad has {message}; give one") as caught:
        State.read(tmp_path / "bad")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("adam", {"exp_avg": torch.ones(3)}, r"shape \(3,\), torch.float32 for exp_avg of '0.0.weight', whose own is"),
        ("adam", {"exp_avg": torch.ones(8, 8, dtype=torch.int64)}, r"shape \(8, 8\), torch.int64 for exp_avg of"),
        ("adam", {"exp_avg_sq": 1.5}, "a number for exp_avg_sq of '0.0.weight'"),
        ("adam", {"step": torch.ones(2)}, r"shape \(2,\), torch.float32 for step of '0.0.weight'"),
        ("adam", {"exp_avg_sq": None}, "no exp_avg_sq of '0.0.weight', which Adam needs"),
        ("momentum", {"momentum_buffer": torch.ones(1)}, r"shape \(1,\), torch.float32 for momentum_buffer of"),
    ],
)
def test_a_damaged_state_of_the_optimizer_is_refused_before_anything_runs(kind, changes, message, batch, tmp_path):
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(2)]
    train = functools.partial(ex.execute, program("gpipe", 2), layers, batch, loss=MSE, optimizer=OPTIMIZERS[kind])
    train(checkpoint=tmp_path)
    path = tmp_path / "step-00000001.safetensors"
    state = State.read(path)
    values = {key: value for key, value in {**state.optimizer["0.0.weight"], **changes}.items() if value is not None}
    dataclasses.replace(state, optimizer={**state.optimizer, "0.0.weight": values}).write(path)
    with pytest.raises(InputError, match=rf"{path} has {message}.*: the file is damaged; resume from the one before"):
        train(resume=tmp_path)


def test_a_state_of_a_parameter_that_is_not_there_is_refused(tmp_path):
    State(1, 0, {"weight": torch.ones(2)}, {"other": {"momentum_buffer": torch.ones(2)}}, "SGD").write(tmp_path / "bad")
    with pytest.raises(InputError, match="the state of 'other', which is no parameter of its model: the file is dam"):
        State.read(tmp_path / "bad")


_KILLED_WHILE_SAVING = """
import os, signal, sys
from pathlib import Path
import torch
from explorer.execute.checkpoint_state import State
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
State(2, 0, {"weight": torch.ones(2)}).write(Path(sys.argv[1]) / "step-00000002.safetensors")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no signal that cannot be caught")
def test_what_a_run_killed_while_saving_leaves_is_not_loaded_and_goes_with_the_next_save(layers, batch, tmp_path):
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path)
    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_SAVING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (part,) = tmp_path.glob(".step-00000002*.part")
    assert latest(tmp_path).step == 1
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path, resume=tmp_path)
    assert not part.exists()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"step-0000000{n}.safetensors" for n in (1, 2)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_refused_and_not_waited_for(layers, batch, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"a file that can be read; .*pipe cannot: it is a device or a pipe"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, resume=tmp_path / "pipe")


def test_a_folder_that_looks_like_a_checkpoint_is_left_alone(layers, batch, tmp_path):
    (tmp_path / "step-00000000.safetensors").mkdir()
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, n_steps=2, checkpoint=tmp_path, keep_last=1)
    names = ["step-00000000.safetensors", "step-00000002.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(layers, batch, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # who runs the tests may write anywhere
    layers[0].register_forward_hook(lambda *_: pytest.fail("it has run"))
    with pytest.raises(InputError, match=f"can be written to; {tmp_path} cannot: Permission denied; give another"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path / "deep" / "deeper")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.uint8])
def test_tensors_of_every_shape_and_format_come_back(dtype, tmp_path):
    tensors = {"a": torch.tensor(1).to(dtype), "b": torch.arange(6).reshape(2, 3).T.to(dtype), "c": torch.empty(0, 3)}
    write_tensors(tmp_path / "file", tensors, {"word": "ü"})
    back, words = read_tensors(tmp_path / "file")
    assert words == {"word": "ü"}
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume": "nowhere"}, "a checkpoint is a file that can be read; nowhere cannot: No such file"),
        ({"resume": 3}, 'resume is the path of a folder; got int; try "checkpoints/"'),
        ({"checkpoint": 3}, "checkpoint is the path of a folder; got int"),
        ({"every": 0}, "every is a whole number of at least 1; got 0; try 1"),
        ({"keep_last": True}, "keep_last is a whole number of at least 1; got True"),
    ],
)
def test_arguments_that_cannot_be_are_refused(changes, message, layers, batch):
    with pytest.raises(InputError, match=message):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, **changes)


def test_an_empty_folder_and_a_file_for_a_folder_are_refused(layers, batch, tmp_path):
    with pytest.raises(InputError, match=r"resumes from a checkpoint; .* has no step-….safetensors; run with"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, resume=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"a checkpoint goes into a folder; .* is a file"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, checkpoint=tmp_path / "file")


def test_a_run_that_trains_nothing_has_no_checkpoint(layers, batch, tmp_path):
    forward = ex.schedule("forward_only", n_ranks=2, n_micro_batches=4)
    with pytest.raises(InputError, match="a checkpoint is of a training; got a program that runs no backward"):
        ex.execute(forward, layers, batch, checkpoint=tmp_path)


def test_another_model_or_optimizer_is_refused(layers, batch, tmp_path):
    ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=OPTIMIZERS["momentum"], checkpoint=tmp_path)
    with pytest.raises(InputError, match=r"is of the model that goes on; this one also has 7.0.weight, 7.0.bias"):
        ex.execute(program("gpipe", 2), layers[:7], batch, loss=MSE, resume=tmp_path)
    with pytest.raises(InputError, match="the checkpoint has the state of SGD, got Adam; give SGD"):
        ex.execute(program("gpipe", 2), layers, batch, loss=MSE, optimizer=OPTIMIZERS["adam"], resume=tmp_path)


def test_an_optimizer_that_keeps_more_than_tensors_and_numbers_is_refused(layers, batch, tmp_path):
    class Odd(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            for group in self.param_groups:
                for parameter in group["params"]:
                    self.state[parameter]["history"] = ["…"]

    with pytest.raises(InputError, match="in tensors and numbers; Odd has history besides; use SGD, Adam"):
        ex.execute(
            program("gpipe", 2), layers, batch, loss=MSE, optimizer=lambda p: Odd(p, lr=0.1), checkpoint=tmp_path
        )


def test_a_traced_module_is_saved_and_goes_on(batch, tmp_path):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.middle, self.leave = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.leave(torch.relu(self.middle(self.enter(x))))

    net, adam = Net(), OPTIMIZERS["adam"]
    whole = ex.execute(program("1f1b", 2), net, batch, loss=MSE, optimizer=adam, n_steps=3, split_points=["leave"])
    ex.execute(program("1f1b", 2), net, batch, loss=MSE, optimizer=adam, split_points=["leave"], checkpoint=tmp_path)
    rest = ex.execute(program("gpipe", 1), net, batch, loss=MSE, optimizer=adam, n_steps=2, resume=tmp_path)
    assert rest.losses == pytest.approx(whole.losses[1:], rel=1e-5)
    assert rest.state_dict()["middle.num_batches_tracked"] == 12


@pytest.mark.slow
def test_processes_save_and_resume_as_the_kernel_does(layers, batch, tmp_path):
    momentum = OPTIMIZERS["momentum"]
    whole = ex.execute(program("1f1b", 2), layers, batch, loss=MSE, optimizer=momentum, n_steps=3)
    first = ex.execute(
        program("1f1b", 2),
        layers,
        batch,
        loss=MSE,
        optimizer=momentum,
        n_steps=1,
        backend="processes",
        checkpoint=tmp_path,
    )
    middle = ex.execute(
        program("zb_h1", 2),
        layers,
        batch,
        loss=MSE,
        optimizer=momentum,
        backend="processes",
        checkpoint=tmp_path,
        resume=tmp_path,
    )
    last = ex.execute(program("gpipe", 4), layers, batch, loss=MSE, optimizer=momentum, resume=tmp_path)
    assert first.losses + middle.losses + last.losses == pytest.approx(whole.losses, rel=1e-5)
    assert first.parity
    assert middle.parity
    assert last.parity


@pytest.mark.parametrize("argument", ["checkpoint", "resume"])
@pytest.mark.parametrize(
    ("path", "why"), [("", "it is empty"), ("a\0b", "embedded null byte"), ("a" * 5000, "File name too long")]
)
def test_a_path_that_is_none_is_refused_before_anything_runs(path, why, argument, layers, batch):
    with pytest.raises(InputError, match=f"{argument} is the path of a folder; got .*, which is none: {why}; try"):
        ex.execute(program("1f1b", 2), layers, batch, loss=MSE, **{argument: path})
