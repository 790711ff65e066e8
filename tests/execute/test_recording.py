"""A user's own torch schedules under torchrun: recorded whole, in order, at the right times, and left as they were."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

import explorer as ex
from explorer.core import Kind, Origin, Stream
from explorer.errors import InputError
from explorer.execute._torch import one_rank_group
from tests.execute.recorded_script import N_MICRO_BATCHES, N_STEPS, NAMES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="starts torchrun")]

SCRIPT = Path(__file__).with_name("recorded_script.py")
N_RANKS = 2
ALL = [*NAMES, "own"]
LIMIT = 120  # seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What two ranks have recorded and told, of all schedules."""
    made = tmp_path_factory.mktemp("recorded")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={N_RANKS}"]
    done = subprocess.run([*command, SCRIPT, made], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return made


@pytest.fixture(scope="module")
def told(folder):
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(N_RANKS)]


def loaded(folder: Path, name: str) -> ex.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        trace = ex.load(folder / name)
    assert isinstance(trace, ex.Trace)
    return trace


def computed(trace: ex.Trace, rank: int, step: int) -> list[tuple[str, int, int]]:
    """Kind, stage and micro-batch of what ran, in order of time; gradient reduction apart."""
    events = trace.events
    rows = np.flatnonzero((events.stream == Stream.COMPUTE) & (events.rank == rank) & (events.step == step))
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    actions = [(Kind(events.kind[r]).name, int(events.stage[r]), int(events.micro_batch[r])) for r in rows]
    return [action for action in actions if action[0] != "G"]


def passing(actions: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Where the diary's layers notice something: forwards, and backwards through the layer's end.

    Torch's I of stage 0 does nothing, and its W all.
    """
    split = {(stage, micro_batch) for kind, stage, micro_batch in actions if kind == "W" and stage == 0}
    noticed = []
    for kind, stage, micro_batch in actions:
        is_backward = kind == "B" or (kind == "W" if (stage, micro_batch) in split else kind == "I")
        if kind == "F" or is_backward:
            noticed.append(("forward" if kind == "F" else "backward", stage, micro_batch))
    return noticed


@pytest.mark.parametrize("name", ALL)
def test_every_action_is_there_once_in_the_order_of_the_layers_own_diary(folder, told, name):
    trace = loaded(folder, name)
    assert trace.steps == list(range(N_STEPS))
    for rank in range(N_RANKS):
        diary = [tuple(entry[:3]) for entry in told[rank][name]["diary"]]  # of the last step
        for step in range(N_STEPS):
            actions = computed(trace, rank, step)
            assert len(set(actions)) == len(actions)
            assert passing(actions) == diary
        stages = {stage for _, stage, _ in diary}
        assert len(diary) == 2 * len(stages) * N_MICRO_BATCHES


@pytest.mark.parametrize("name", ALL)
def test_the_order_is_that_of_torchs_own_table(folder, told, name):
    trace = loaded(folder, name)
    for rank in range(N_RANKS):
        table = told[rank][name]["table"]
        if table is None:  # GPipe and 1F1B have none that they follow
            ours = {"GPipe": "gpipe", "1F1B": "1f1b"}[name]
            program = ex.schedule(ours, n_ranks=N_RANKS, n_micro_batches=N_MICRO_BATCHES)
            wanted = [(a.kind.name, a.stage, a.micro_batch) for a in program.order(rank)]
        else:  # an overlap, (0F3;3B1)OVERLAP_F_B, runs one after the other
            words = [
                re.findall(r"(\d+)([FBIW])(\d+)", cell) for cell in table if "SEND" not in cell and "RECV" not in cell
            ]
            wanted = [(kind, int(stage), int(m)) for cell in words for stage, kind, m in cell]
        assert computed(trace, rank, 0) == wanted


@pytest.mark.parametrize("name", ALL)
def test_losses_and_gradients_are_those_of_an_unrecorded_run(told, name):
    for rank in range(N_RANKS):
        assert told[rank][name]["recorded"] == told[rank][name]["plain"]


@pytest.mark.parametrize("name", ALL)
def test_what_the_layers_noted_lies_within_the_recorded_times(folder, told, name):
    for rank in range(N_RANKS):
        line = next(
            json.loads(text)
            for text in (folder / name / f"rank-{rank:05d}.jsonl").read_text().splitlines()
            if text.startswith(f'{{"step":{N_STEPS - 1},')
        )
        actions = zip(*(line["actions"][key] for key in ("kind", "stage", "micro_batch", "start", "end")), strict=True)
        spans = {
            (kind, stage, m): (line["begin"] + start, line["begin"] + end) for kind, stage, m, start, end in actions
        }
        for what, stage, micro_batch, begin, end in told[rank][name]["diary"]:
            kinds = "F" if what == "forward" else "B" if ("B", stage, micro_batch) in spans else "IW"
            assert any(
                spans[kind, stage, micro_batch][0] <= begin <= end <= spans[kind, stage, micro_batch][1]
                for kind in kinds
            )


@pytest.mark.parametrize("name", ALL)
def test_each_message_has_two_ends_and_moves_before_it_is_used(folder, name):
    events = loaded(folder, name).events
    sends, receives = (events.take(events.stream == stream) for stream in (Stream.SEND, Stream.RECEIVE))
    shape = NAMES.get(name, "line")
    # boundaries between stages on different ranks: of a V, all but the one at its tip
    n_boundaries = {"line": N_RANKS - 1, "loop": 2 * N_RANKS - 1, "v": 2 * (N_RANKS - 1)}[shape]
    assert len(sends) == len(receives) == 2 * n_boundaries * N_MICRO_BATCHES * N_STEPS
    assert (sends.bytes == 2 * 8 * 4).all()  # 2 samples of 8 floats
    assert (receives.start >= sends.start).all()
    assert (receives.end == sends.end).all()
    key = {
        (s, r, st, m, k != Kind.F): start
        for s, r, st, m, k, start, stream in zip(
            *(
                events.columns()[c].tolist()
                for c in ("step", "rank", "stage", "micro_batch", "kind", "start", "stream")
            ),
            strict=True,
        )
        if stream == Stream.COMPUTE and k in (Kind.F, Kind.B, Kind.I)
    }
    for row in range(len(receives)):
        is_backward = bool(receives.kind[row] == Kind.RECV_B)
        used = key[receives.step[row], receives.rank[row], receives.stage[row], receives.micro_batch[row], is_backward]
        assert receives.end[row] <= used


@pytest.mark.parametrize("name", ALL)
def test_the_trace_goes_on_like_any_other(folder, tmp_path, name):
    trace = loaded(folder, name)
    assert trace.clock == "real"
    assert trace.clock_offsets is None  # one machine, one clock
    assert ex.timeline(trace).data
    assert ex.memory(trace).data
    assert (trace.peak_in_flight >= 1).all()
    assert 0 < trace.bubble_ratio < 1
    ex.save(trace, tmp_path / "run.json.gz")
    assert ex.load(tmp_path / "run.json.gz").summary() == trace.summary()


def test_memory_of_gpipe_is_what_the_layers_keep(folder):
    # a stage keeps for each micro-batch Linear's input, received or the caller's, and Tanh's output, which the noting
    # view shares; 2 samples of 8 floats each; the last stage's loss keeps the difference besides
    one = 2 * 8 * 4
    trace = loaded(folder, "GPipe")
    peaks = ex.peak_bytes(trace, category=ex.Category.ACTIVATIONS)
    assert peaks[0] == N_MICRO_BATCHES * one + N_MICRO_BATCHES * one  # its part of the batch, and outputs
    buffers = ex.peak_bytes(trace, category=ex.Category.RECEIVE_BUFFERS)
    assert buffers.tolist() == [N_MICRO_BATCHES * one] * 2  # gradients on rank 0, activations on rank 1
    parameters = ex.peak_bytes(trace, category=ex.Category.PARAMETERS)
    assert parameters.tolist() == [(8 * 8 + 8) * 4] * 2
    memory = trace.memory
    assert set(memory.origin[memory.step == 0].tolist()) == {Origin.MEASURED}
    assert set(memory.origin[memory.step == 1].tolist()) == {Origin.MODELLED}  # the same again


def test_forward_only_steps_are_left_out_with_a_word(folder):
    with pytest.warns(UserWarning, match="1 steps without backwards are left out"):
        ex.load(folder / "GPipe")


def test_one_ranks_file_stands_for_its_pipeline(folder):
    assert loaded(folder, "1F1B/rank-00001.jsonl").summary() == loaded(folder, "1F1B").summary()


def test_a_header_says_where_it_ran(folder):
    header = json.loads((folder / "1F1B" / "rank-00001.jsonl").read_text().splitlines()[0])
    assert header["distributedInfo"] == {"backend": "gloo", "rank": 1, "world_size": 2}
    assert header["schedule"] == "Schedule1F1B"


def test_two_thousand_actions_take_less_than_a_megabyte(folder):
    sizes = [len(path.read_text()) for path in (folder / "Interleaved1F1B").iterdir()]
    n_actions = sum(loaded(folder, "Interleaved1F1B").events.stream == Stream.COMPUTE)
    assert sum(sizes) / n_actions * 2048 < 2**20


# ── in this process, on one rank ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def schedule():
    with one_rank_group():
        layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        stage = PipelineStage(layers, 0, 1, torch.device("cpu"))
        yield ScheduleGPipe(stage, 2, loss_fn=lambda output, target: (output - target).square().mean())


def step(schedule, target=None):
    schedule.step(torch.ones(4, 4), target=torch.zeros(4, 4) if target is None else target)


def attributes(schedule):
    from torch.distributed.pipelining import schedules

    return dict(vars(schedule)).keys(), vars(schedule._stage).keys(), schedules._batch_p2p


def test_afterwards_the_schedule_is_as_it_was(schedule, tmp_path):
    step(schedule)  # the first gives torch's own parts their places
    before = attributes(schedule)
    with ex.record(tmp_path, schedule) as file:
        assert file == tmp_path / "rank-00000.jsonl"
        step(schedule)
    assert attributes(schedule) == before
    step(schedule)
    assert loaded(tmp_path, "").steps == [0]


def test_a_recording_that_is_opened_again_is_continued(schedule, tmp_path):
    for _ in range(3):
        with ex.record(tmp_path, schedule):
            step(schedule)
            step(schedule)
    assert loaded(tmp_path, "").steps == [0, 1, 2, 3, 4, 5]


def test_a_recording_of_another_schedule_is_not_replaced_within_a_process(schedule, tmp_path):
    other = ScheduleGPipe(schedule._stage, 4, loss_fn=schedule._loss_fn)
    with ex.record(tmp_path, schedule):
        step(schedule)
    with (
        pytest.raises(
            InputError, match="has 1 steps that this process recorded of another, ScheduleGPipe; try another"
        ),
        ex.record(tmp_path, other),
    ):
        step(other)
    assert loaded(tmp_path, "").steps == [0]


def test_two_recordings_at_once_both_get_all(schedule, tmp_path):
    with ex.record(tmp_path / "a", schedule), ex.record(tmp_path / "b", schedule):
        step(schedule)
    a, b = loaded(tmp_path, "a"), loaded(tmp_path, "b")
    assert computed(a, 0, 0) == computed(b, 0, 0) == [("F", 0, 0), ("F", 0, 1), ("B", 0, 0), ("B", 0, 1)]


def test_recordings_may_end_in_any_order(schedule, tmp_path):
    first, second = ex.record(tmp_path / "a", schedule), ex.record(tmp_path / "b", schedule)
    before = attributes(schedule)[2]
    first.__enter__()
    second.__enter__()
    step(schedule)
    first.__exit__(None, None, None)
    step(schedule)
    second.__exit__(None, None, None)
    step(schedule)
    assert (loaded(tmp_path, "a").steps, loaded(tmp_path, "b").steps) == ([0], [0, 1])
    assert before.__module__ == "torch.distributed.pipelining.schedules"


@pytest.mark.parametrize("raised", [ValueError("a loss of our own"), KeyboardInterrupt()])
def test_a_step_that_raises_is_kept_apart_with_its_error(schedule, tmp_path, raised):
    class Raising(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), named=None):
            if "sub" in function.__name__:
                raise raised
            return super().__torch_function__(function, types, arguments, named or {})

    before = attributes(schedule)[2]
    with ex.record(tmp_path, schedule):
        step(schedule)
    with pytest.raises(type(raised)), ex.record(tmp_path, schedule):
        step(schedule, torch.zeros(4, 4).as_subclass(Raising))
    assert attributes(schedule)[2] is before
    with pytest.warns(UserWarning, match=rf"step 1 broke off on rank 0 \({type(raised).__name__}.*\) and is left out"):
        trace = ex.load(tmp_path)
    assert trace.steps == [0]


def test_a_step_that_a_layer_breaks_off_names_what_that_raised(schedule, tmp_path):
    def divides(module, arguments):
        return 1 / 0

    with ex.record(tmp_path, schedule):
        step(schedule)
        schedule._stage.submod.register_forward_pre_hook(divides)
        with pytest.raises(RuntimeError, match="failed to run forward"):
            step(schedule)
    with pytest.warns(UserWarning, match=r"step 1 broke off on rank 0 \(ZeroDivisionError: division by zero\)"):
        ex.load(tmp_path)


def test_a_line_that_is_broken_off_loses_one_step(schedule, tmp_path):
    with ex.record(tmp_path, schedule) as file:
        step(schedule)
        step(schedule)
        step(schedule)
    lines = file.read_text().splitlines(keepends=True)
    assert '"clock"' in lines.pop()  # written when the recording ends; a crash comes before
    file.write_text("".join(lines)[:-40])
    with pytest.warns(
        UserWarning, match=r"rank-00000\.jsonl: its last line is broken off and left out; it has 2 steps"
    ):
        assert ex.load(tmp_path).steps == [0, 1]


def test_a_disk_that_is_full_ends_the_recording_and_not_the_training(schedule, tmp_path, monkeypatch):
    with ex.record(tmp_path / "there", schedule) as file:
        step(schedule)
        file.unlink()
        file.parent.rmdir()
        with pytest.warns(UserWarning, match=r"recording ends: .* cannot be written \(No such file or directory\)"):
            step(schedule)
        step(schedule)  # without another word


def test_memory_may_be_left_out(schedule, tmp_path):
    with ex.record(tmp_path, schedule, memory=False):
        step(schedule)
    assert len(loaded(tmp_path, "").memory) == 0


def test_what_is_no_schedule_is_refused(tmp_path):
    for value, came in ((ScheduleGPipe, "ScheduleGPipe"), (nn.Linear(1, 1), "Linear"), (None, "NoneType")):
        with (
            pytest.raises(InputError, match=rf"a schedule object of torch\.distributed\.pipelining, .*; got {came}"),
            ex.record(tmp_path, value),
        ):
            pass


def test_a_folder_that_cannot_be_is_refused(schedule, tmp_path):
    (tmp_path / "file").write_text("")
    for path, message in (
        (tmp_path / "file", "a folder where files can be written"),
        (None, "a recording has a folder"),
        ("a\0b", r"a folder where files can be written; got .* \(embedded null byte\)"),
    ):
        with pytest.raises(InputError, match=message), ex.record(path, schedule):
            pass
