"""What ranks that torchrun starts learn of each other while a run goes on, save and go on from; two real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from torch.distributed import TCPStore

import explorer as ex
from explorer.core.clocks import ClockOffset
from explorer.execute.aligning import RankClock
from tests.execute import joined_script
from tests.execute.joined_script import N_MICRO_BATCHES, N_STEPS

pytestmark = pytest.mark.slow

SCRIPT = Path(joined_script.__file__)
ROOT = SCRIPT.parents[2]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> list[dict]:
    """What each rank has written down; their store is kept here, as by torchrun's own process."""
    folder = tmp_path_factory.mktemp("joined")
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False, master_listen_fd=server.detach())
    own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    own |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0", "OMP_NUM_THREADS": "1"}
    paths = os.pathsep.join([str(ROOT), *(path for path in sys.path if path)])
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(SCRIPT), str(folder)],
                    env={**os.environ, **own, "PYTHONPATH": paths, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
            for rank in range(2)
        ]
        try:
            said = [rank.communicate(timeout=240)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    del store
    assert [rank.returncode for rank in ranks] == [0, 0], said
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def whole() -> ex.Run:
    """The same training in this process, without a break."""
    return joined_script.train(joined_script.program("1f1b"), n_steps=N_STEPS)


def test_each_step_is_told_on_every_rank_before_the_next_begins(told):
    n_slots = joined_script.program("1f1b").n_slots
    for rank, one in enumerate(told):
        own = "0" if rank == 0 else "2"
        for number, (step, loss, slots, calls) in enumerate(one["whole"]["steps"]):
            assert step == number
            assert loss == one["whole"]["losses"][step]
            assert slots == (step + 1) * n_slots  # all of both ranks, and nothing of a later step
            assert calls[own] == N_MICRO_BATCHES * (1 + step + 1)  # the warm-up's and each step's forwards
        assert len(one["whole"]["steps"]) == N_STEPS
    assert told[0]["whole"]["n_events"] == told[1]["whole"]["n_events"]


def test_the_first_rank_alone_trains_the_model_in_one_piece_and_all_have_the_verdict(told):
    in_one_piece = N_STEPS * N_MICRO_BATCHES  # forwards of each layer, for dropout looks at micro-batches
    own = N_MICRO_BATCHES * (1 + N_STEPS)
    assert told[0]["whole"]["calls"] == {"0": own + in_one_piece, "1": in_one_piece, "2": in_one_piece}
    assert told[1]["whole"]["calls"] == {"0": 0, "1": own, "2": own}
    assert told[0]["whole"]["parity"] is told[1]["whole"]["parity"] is True
    assert told[0]["whole"]["reference"] == told[1]["whole"]["reference"]


def test_the_first_rank_alone_writes_checkpoints_of_the_whole_model(told):
    assert told[0]["whole"]["files"] == ["step-00000002.safetensors", "step-00000004.safetensors"]
    assert told[1]["whole"]["files"] is None  # its folder was named otherwise, and nobody looked


@pytest.mark.parametrize("other", ["interleaved", "split"])
def test_a_run_resumed_at_other_chunks_and_schedule_goes_on_as_the_uninterrupted_one(other, told, whole):
    for one in told:
        assert one["whole"]["losses"] == pytest.approx(whole.losses, rel=1e-5)
        assert one[other]["first_step"] == 2
        assert one[other]["losses"] == pytest.approx(whole.losses[2:], rel=1e-5)
        assert one[other]["parity"] is True


@pytest.mark.parametrize(
    ("case", "argument", "said"),
    [
        ("nowhere", "resume", "cannot: No such file or directory; give another; rank 0 alone looks, on "),
        ("no folder", "checkpoint", "a file is a file; give a folder; rank 0 alone looks, on "),
        ("full", "checkpoint", "cannot: No space left on device; give another; rank 0 alone looks, on "),
        ("unlike", "n_steps", "all ranks call execute alike; rank 1 has n_steps=2, rank 0 1; give all the same"),
    ],
)
def test_what_the_first_rank_cannot_do_is_one_sentence_on_all(case, argument, said, told):
    for one in told:
        assert one[case]["type"] == "InputError"
        assert one[case]["argument"] == argument
        assert said in one[case]["text"]
        assert "\n" not in one[case]["text"]


def test_ranks_wait_for_the_first_for_longer_than_a_message_may_take(told):
    assert [one["late"] for one in told] == [7, 7]


def test_a_hook_that_fails_on_one_rank_ends_all_with_its_words(told):
    first, second = (one["stopped"] for one in told)
    assert first == {"type": "KeyError", "text": "'a fuse has blown'", "argument": None, "steps": None}
    assert second["type"] == "RunError"
    assert second["text"].startswith("a run's hooks must not fail; one on rank 0 did: KeyError: 'a fuse has blown'")
    assert second["steps"] == [0, 1]  # what had run until then


def test_a_first_rank_that_is_gone_is_said_in_one_sentence(told):
    assert "gone" not in told[0]
    assert told[1]["gone"].startswith(
        "RunError: every rank must run through; one is gone while the others wait for it ("
    )
    assert "\n" not in told[1]["gone"]


def test_a_clock_that_drifts_is_followed_from_comparison_to_comparison():
    """1 ms ahead at 0 s, 3 ms at 10 s, 4 ms at 20 s: known to ±1 ms each time."""
    clock = RankClock([(0.0, 1e-3, 0.0, 2e-3)])
    assert clock.seconds(5.0) == pytest.approx(5.0 - 1e-3)
    clock.note((10.0, 3e-3, 2e-3, 4e-3))
    assert clock.seconds(5.0) == pytest.approx(5.0 - 2e-3)
    clock.note((20.0, 4e-3, 3e-3, 5e-3))
    assert clock.seconds(15.0) == pytest.approx(15.0 - 3.5e-3)
    assert clock.offset == ClockOffset(1e-3, 0.0, 5e-3)  # what all three have said
