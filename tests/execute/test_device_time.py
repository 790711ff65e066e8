"""Moments of a device get their numbers when the device comes to them, on a device that a test drives by hand."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.core import Action, Kind
from explorer.errors import RunError
from explorer.execute._torch_ranks import Parcel
from explorer.execute.device_time import DeviceClock, Moment, is_settled, settled
from explorer.execute.devices import backend_of, check_devices, device_of
from explorer.execute.events import SlotEnd, Updated
from explorer.execute.reporter import Reporter

F0 = Action(Kind.F, 0, 0)


class Device:
    """Comes to its events only when told to; each lies 10 ms behind the one before."""

    def __init__(self) -> None:
        self.n_made = self.n_done = 0

    def event(self):
        return Event(self)


class Event:
    def __init__(self, device) -> None:
        self.device, self.at = device, -1

    def record(self) -> None:
        self.at = self.device.n_made
        self.device.n_made += 1

    def query(self) -> bool:
        return self.at < self.device.n_done

    def synchronize(self) -> None:
        self.device.n_done = max(self.device.n_done, self.at + 1)

    def elapsed_time(self, other) -> float:
        assert self.query()
        assert other.query()
        return 10.0 * (other.at - self.at)  # milliseconds


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def clock(device):
    return DeviceClock(device.event, lambda: 100.0)  # the base is at 100 s of the host


def slot_end(*moments: Moment) -> SlotEnd:
    pairs = tuple(zip(moments[::2], moments[1::2], strict=True))
    return SlotEnd(0, 0, 0, (F0,), sum(end - begin for begin, end in pairs), moments[0], moments[-1], pairs)


def test_a_slot_is_told_of_only_when_the_device_has_ended_it(device, clock):
    row = slot_end(clock(), clock())
    device.n_done = 2  # the base, and the begin
    assert not is_settled(row)
    device.n_done = 3
    assert is_settled(row)
    plain = settled(row)
    assert (plain.begun, plain.ended, plain.seconds) == pytest.approx((100.01, 100.02, 0.01))


def test_a_slots_seconds_are_those_of_its_actions(clock):
    plain = settled(slot_end(*(clock() for _ in range(6))))
    assert plain.seconds == pytest.approx(0.03)
    assert plain.ended - plain.begun == pytest.approx(0.05)
    assert [end - begin for begin, end in plain.moments] == pytest.approx([0.01] * 3)


def test_messages_and_updates_too(device, clock):
    sent = Parcel(Kind.SEND_F, 0, 0, 8, clock())
    received = Parcel(Kind.RECV_F, 1, 0, 8, clock(), clock(), clock())
    updated = Updated(0, 0, 0, clock() - clock(), clock())
    assert not any(map(is_settled, (sent, received, updated)))
    plain = settled(received)
    assert (plain.posted, plain.got - plain.wanted) == pytest.approx((100.02, 0.01))
    assert math.isnan(settled(sent).got)
    assert is_settled(received)
    assert isinstance(settled(updated).seconds, float)


def test_a_report_holds_what_is_known_and_a_steps_end_all(device, clock):
    told = []
    reporter = Reporter(None)
    reporter.on_device = True
    reporter.tell = lambda what, value: told.append((what, value))
    reporter.begin(0)
    for _ in range(2):
        reporter._keep(slot_end(clock(), clock()))
    device.n_done = 3  # the first slot is over
    reporter.flush()
    assert [(what, len(rows)) for what, rows in told[1:]] == [("rows", 1)]
    reporter.end(0.5)
    assert [what for what, _ in told] == ["begin", "rows", "rows", "end"]
    assert told[2][1][0].ended == pytest.approx(100.04)


def test_a_rank_has_a_gpu_of_its_own_or_the_run_is_refused(monkeypatch):
    gpu, cpu = torch.device("cuda", 0), torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_devices(2, gpu)
    check_devices(64, cpu)
    with pytest.raises(RunError, match=r"have a GPU each; got 4 ranks and 2 GPUs; try backend=\"kernel\""):
        check_devices(4, gpu)
    assert (device_of(1, gpu), device_of(1, cpu)) == (torch.device("cuda", 1), cpu)
    assert (backend_of(gpu), backend_of(cpu)) == ("nccl", "gloo")


@pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_train_as_one_model():
    import explorer as ex

    program = ex.schedule("1f1b", n_ranks=2, n_micro_batches=4)
    layers = [torch.nn.Linear(64, 64, device="cuda:0") for _ in range(2)]
    batch = torch.randn(16, 64, device="cuda:0"), torch.randn(16, 64, device="cuda:0")
    run = ex.execute(program, layers, batch, loss=torch.nn.functional.mse_loss, n_steps=3, backend="processes")
    assert run.parity
