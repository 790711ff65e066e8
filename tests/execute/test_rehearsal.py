"""Code of others that ends its process does not end the caller's: a first forward is made elsewhere."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from torch import nn

import explorer as ex
from explorer.errors import ModelError, RunError
from explorer.execute.keeper import keeper, prepare
from explorer.execute.rehearsal import is_foreign
from tests.execute.ranks import SOON, WIDTH, Trouble, blow, children, die, execute, forker, squared

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")]


def leave() -> None:
    os._exit(3)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def sleep() -> None:
    time.sleep(1000)


class Net(nn.Module):
    """No sequence of layers: its own forward is followed by torch's tracer."""

    def __init__(self, what) -> None:
        super().__init__()
        self.enter, self.rest = nn.Linear(WIDTH, WIDTH), Trouble(1, what)

    def forward(self, x):
        return self.rest(self.enter(x).tanh())


@pytest.fixture
def looped():
    return ex.schedule("interleaved_1f1b", n_ranks=2, n_micro_batches=4)


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare(2)


@pytest.mark.parametrize(
    ("what", "how"),
    [
        (leave, "has ended its process by itself; look for an exit there"),
        (sys.exit, "has ended its process by itself; look for an exit there"),
        (die, "was ended by SIGKILL, with its process; the system may have been short of memory"),
        (crash, "was ended by SIGSEGV, with its process; see the error stream"),
    ],
)
def test_a_first_forward_that_ends_its_process_is_named_with_its_rank(what, how, looped, batch, make_layers):
    layers = make_layers(4)
    layers[2] = Trouble(1, what)
    begin = time.monotonic()
    with pytest.raises(RunError, match=rf"2F0 \(forward of .* in stage 2 on rank 0, .*\), in layer 2, {how}"):
        execute(looped, layers, batch)
    assert time.monotonic() - begin < SOON
    assert not children(forker())


def test_a_loss_that_ends_its_process_is_named(looped, batch, make_layers):
    with pytest.raises(RunError, match=r"3F0 .* stage 3 on rank 1, .*, in the loss, has ended its process"):
        ex.execute(looped, make_layers(4), batch, loss=lambda a, b: leave(), backend="processes")


def test_a_model_that_the_tracer_would_follow_is_tried_elsewhere_before(program, batch):
    with pytest.raises(RunError, match=r"1F0 .* in stage 1 on rank 1, .*\), in layer rest, has ended its process"):
        execute(program, Net(leave), batch, split_points=["rest"])


def test_a_first_forward_that_hangs_is_given_up(program, batch, make_layers):
    with pytest.raises(RunError, match=r"0F0 .* rank 0, .*, in layer 0, has not ended within 3 s; look for a loop"):
        execute(program, [Trouble(1, sleep), *make_layers(1)], batch, timeout=3.0)
    assert not children(forker())


def test_what_it_raises_is_told_as_ever(program, batch, make_layers):
    with pytest.raises(RunError, match=r"1F0 .*before the first step\) failed in layer 1: KeyError"):
        execute(program, [*make_layers(1), Trouble(1, blow)], batch)


def test_the_run_that_follows_says_how_its_processes_came_to_be(program, batch, make_layers):
    keeper().end_idle()
    assert execute(program, make_layers(2), batch).started.n_forked == 2
    assert execute(program, make_layers(2), batch).started.n_forked == 0


def test_a_model_that_is_refused_leaves_no_old_code_in_a_worker(program, batch, make_layers, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "written_twice.py"
    text = "from torch import nn\n\nclass Layer(nn.Linear):\n    def forward(self, x):\n        return {}\n"
    file.write_text(text.format("None"))
    import written_twice

    with pytest.raises(ModelError, match="gives NoneType"):
        execute(program, [*make_layers(1), written_twice.Layer(WIDTH, WIDTH)], batch)
    file.write_text(text.format("super().forward(x) * 2.0"))
    del sys.modules["written_twice"]
    import written_twice

    assert execute(program, [*make_layers(1), written_twice.Layer(WIDTH, WIDTH)], batch).parity
    del sys.modules["written_twice"]


def test_code_of_torch_and_ours_alone_is_not_rehearsed():
    layers, mse = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.functional.mse_loss
    ready = ex.ready_model("mlp", n_stages=2, n_micro_batches=2)
    assert not is_foreign(layers, mse)
    assert not is_foreign(layers, nn.MSELoss())
    assert not is_foreign(nn.Sequential(*ready.layers), ready.loss)
    assert is_foreign(layers, squared)
    assert is_foreign(nn.Sequential(Trouble(1, blow)), mse)
    layers[0].register_forward_hook(lambda module, given, output: output)
    assert is_foreign(layers, None)
